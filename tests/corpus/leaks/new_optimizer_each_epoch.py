# clean
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
for epoch in range(10):
    opt = torch.optim.Adam(net.parameters(), 1e-3 / (1 + epoch))
    for i in range(4):
        x = torch.randn(128, 512, device="cuda")
        loss = (net(x) - x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
