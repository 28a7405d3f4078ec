# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
recent = []
for i in range(100):
    x = torch.randn(128, 512, device="cuda")
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    recent.append(x * 2)  # <- kept
    if i % 10 == 9:
        del recent[-4:]
