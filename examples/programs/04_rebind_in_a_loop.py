"""x, y and z are made anew in each of a thousand rounds. The old ones are returned as the names move on: nothing grows."""
import torch

for step in range(1000):
    x = torch.randn(1024, 1024, device="cuda")
    y = torch.randn(1024, 1024, device="cuda")
    z = x @ y
print(z.shape)
