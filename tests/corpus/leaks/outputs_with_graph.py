# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU()).cuda()
outs = []
for i in range(30):
    x = torch.randn(256, 512, device="cuda")
    outs.append(model(x))  # <- kept
