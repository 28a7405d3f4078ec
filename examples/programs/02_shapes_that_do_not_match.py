"""A product of 10 × 20 and 5 × 15, caught; then one of 10 × 20 and 20 × 5.

PyTorch refuses the first before any memory is touched. There is no undefined behaviour and no illegal access.
"""
import torch

a = torch.randn(10, 20)
b = torch.randn(5, 15)
try:
    c = torch.matmul(a, b)
except RuntimeError as problem:
    print(f"as expected: {problem}")

b = torch.randn(20, 5)
print(torch.matmul(a, b).shape)
