# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
norms = []
for i in range(150):
    x = torch.randn(64, 256, device="cuda")
    y = net(x)
    loss = y.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    norms.append(torch.cat([p.grad.abs().mean(-1) for p in net.parameters() if p.ndim > 1]).repeat(8))  # <- kept
