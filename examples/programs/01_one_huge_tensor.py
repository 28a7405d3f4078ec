"""One tensor larger than any GPU, caught; then a loop over pieces that fit.

The first request asks for 372.53 GiB: no setting helps, it is more than the device has at all. The loop is fine wherever 3.73 GiB fit; empty_cache()
in each round only gives memory back to the driver and takes it again.
"""
import torch

try:
    whole = torch.zeros(10000, 10000, 1000, dtype=torch.float32, device="cuda")
except torch.OutOfMemoryError as problem:
    print(f"as expected: {str(problem)[:60]}…")

total = 0.0
for part in range(5):
    piece = torch.zeros(10000, 10000, 10, dtype=torch.float32, device="cuda")
    total += piece.sum().item()
    del piece
    torch.cuda.empty_cache()
