# clean
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)]).cuda()
opt = torch.optim.Adam(model.parameters())
for step in range(8):
    opt.zero_grad()
    for micro in range(4):
        (model(torch.randn(256, 256, device="cuda")).pow(2).mean() / 4).backward()
    opt.step()
