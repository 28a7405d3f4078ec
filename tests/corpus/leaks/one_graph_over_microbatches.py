# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for step in range(3):
    total = 0
    for micro in range(16):
        x = torch.randn(128, 256, device="cuda")
        total = total + model(x).logsumexp(-1).mean()
    opt.zero_grad(); (total / 16).backward(); opt.step()
