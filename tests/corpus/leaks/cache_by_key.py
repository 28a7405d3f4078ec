# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
cache = {}
with torch.no_grad():
    for i in range(40):
        x = torch.randn(128, 512, device="cuda")
        key = float(i)
        if key not in cache:
            cache[key] = model(x)  # <- kept
