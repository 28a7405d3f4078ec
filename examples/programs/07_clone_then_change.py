"""A tensor is cloned, changed in place, and the clone is multiplied. One stream runs in order: the clone is made before the change."""
import torch

a = torch.randn(2048, 2048, device="cuda")
b = a.clone()
a.add_(1.0)
c = b @ b
print(c.cpu().shape)
