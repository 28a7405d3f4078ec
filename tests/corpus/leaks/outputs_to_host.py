# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
outs = []
with torch.no_grad():
    for i in range(40):
        outs.append(model(torch.randn(256, 512, device="cuda")).cpu())
