# clean
import torch
g = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
d = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.LeakyReLU(0.2), torch.nn.Linear(512, 1)).cuda()
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
for i in range(20):
    real, z = torch.randn(256, 512, device="cuda"), torch.randn(256, 64, device="cuda")
    fake = g(z)
    ld = d(fake.detach()).mean() - d(real).mean()
    od.zero_grad(); ld.backward(); od.step()
    lg = -d(fake).mean()
    og.zero_grad(); lg.backward(); og.step()
