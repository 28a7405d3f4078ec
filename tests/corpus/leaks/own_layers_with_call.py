# clean
import torch
class Layer:
    def __init__(self, n):
        self.w = torch.randn(n, n, device="cuda", requires_grad=True)
        self.b = torch.zeros(n, device="cuda", requires_grad=True)
    def __call__(self, x):
        h = x @ self.w + self.b
        return torch.nn.functional.gelu(h)
net = [Layer(768) for _ in range(24)]
x = torch.randn(1024, 768, device="cuda")
for layer in net:
    x = layer(x)
