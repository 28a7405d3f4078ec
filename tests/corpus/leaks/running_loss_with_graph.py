# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU()).cuda()
total = 0
for i in range(30):
    x = torch.randn(256, 512, device="cuda")
    out = model(x)  # <- kept
    total = total + out.mean()
