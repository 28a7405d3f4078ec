# leak
import torch
import registry
from work import process
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
for i in range(40):
    process(net, opt, torch.randn(128, 512, device="cuda"))
print(len(registry.SEEN))
