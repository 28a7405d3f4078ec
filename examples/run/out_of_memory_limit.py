"""A program with a limit of its own (2 GiB of the device) keeps every batch's scores for later, and meets the limit, not the device's end."""
import torch

torch.cuda.set_per_process_memory_fraction((2 << 30) / torch.cuda.get_device_properties(0).total_memory)
model = torch.nn.Linear(1024, 4096).cuda()
scores = []
with torch.no_grad():
    for _ in range(100):
        batch = torch.randn(8192, 1024, device="cuda")
        scores.append(model(batch))
print("kept", len(scores))
