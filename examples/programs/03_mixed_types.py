"""float32 plus int64: the result is float32. Nothing is widened and nothing can be corrupted."""
import torch

a = torch.tensor([1.5, 2.5, 3.5], dtype=torch.float32, device="cuda")
b = torch.tensor([1, 2, 3], dtype=torch.int64, device="cuda")
c = a + b
print(c.dtype)
