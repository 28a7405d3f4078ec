# gpu: 8GiB
"""All pairs of differences in one tensor."""
import torch

a, b = torch.randn(60000, 64, device="cuda"), torch.randn(40000, 64, device="cuda")
distances = (a[:, None, :] - b[None, :, :]).square().sum(-1).sqrt()
print(distances.min().shape)
