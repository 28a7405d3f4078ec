# clean
import torch
from optim import Lion
from net import MLP
net = MLP([512, 512, 512, 10])
opt = Lion(net.parameters(), 1e-4)
for step in range(30):
    x = torch.randn(256, 512, device="cuda")
    loss = net(x).logsumexp(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
