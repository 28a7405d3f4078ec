# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
trail = []
for i in range(40):
    x = torch.randn(128, 256, device="cuda")
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward()
    trail.append([p.grad.clone() for p in net.parameters()])  # <- kept
    opt.step()
