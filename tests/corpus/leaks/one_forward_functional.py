# clean
import torch
ws = [torch.randn(1024, 1024, device="cuda", requires_grad=True) for _ in range(30)]
def net(x):
    for w in ws:
        h = x @ w
        x = torch.relu(h)
    return x
y = net(torch.randn(512, 1024, device="cuda"))
