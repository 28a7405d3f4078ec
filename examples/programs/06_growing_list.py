"""A list that gains a tensor of 1000 × 1000 in each of a hundred rounds: 4 MB a round are held by the list. torch.empty is innocent."""
import torch

kept = []
for step in range(100):
    t = torch.empty(1000, 1000, device="cuda")
    kept.append(t)
print(len(kept))
