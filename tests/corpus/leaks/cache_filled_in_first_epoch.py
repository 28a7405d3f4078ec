# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)).cuda()
opt = torch.optim.Adam(model.parameters())
cache = {}
for epoch in range(4):
    for i in range(10):
        if i not in cache:
            cache[i] = torch.randn(512, 256).cuda()
        loss = model(cache[i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
