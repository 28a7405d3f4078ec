# clean
import torch
w = torch.randn(512, 512, device="cuda")
keys = []
x = torch.randn(64, 512, device="cuda")
with torch.no_grad():
    for _ in range(60):
        keys.append(x @ w)
        s = torch.stack([(x * k).sum(-1) for k in keys[-8:]], -1)
        x = x + s.softmax(-1).mean(-1, keepdim=True)
