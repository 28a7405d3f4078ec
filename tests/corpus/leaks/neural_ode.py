# clean
import torch
f = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 256)).cuda()
y = torch.randn(256, 256, device="cuda")
for i in range(40):
    k1 = f(y)
    k2 = f(y + 0.01 * k1)
    y = y + 0.005 * (k1 + k2)
