# clean
import torch
wx, wh = (torch.randn(512, 512, device="cuda", requires_grad=True) for _ in range(2))
xs = torch.randn(100, 128, 512, device="cuda")
h = torch.zeros(128, 512, device="cuda")
for t in range(100):
    z = xs[t] @ wx + h @ wh
    h = torch.tanh(z)
loss = h.sum()
