# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
shown = []
for i in range(120):
    x = torch.randn(128, 512, device="cuda")
    out = net(x)
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if i % 5 == 0:
        shown.append((i, out.detach().clone()))  # <- kept
