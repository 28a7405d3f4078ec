# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
preds = []
with torch.no_grad():
    for i in range(40):
        x = torch.randn(256, 512).cuda()
        out = model(x)  # <- kept
        preds.append(out)
