# clean
import torch
trunk = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU()).cuda()
heads = torch.nn.ModuleList([torch.nn.Linear(512, 32) for _ in range(10)]).cuda()
opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], 0.01)
for step in range(15):
    x = torch.randn(128, 256, device="cuda")
    grads = []
    for head in heads:
        opt.zero_grad()
        head(trunk(x)).pow(2).mean().backward()
        grads.append(torch.cat([p.grad.flatten() for p in trunk.parameters()]))
    g = torch.stack(grads).mean(0)
    at = 0
    for p in trunk.parameters():
        p.grad = g[at:at + p.numel()].view_as(p).clone(); at += p.numel()
    opt.step()
