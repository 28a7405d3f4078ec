# leak
import torch
g = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1024)).cuda()
d = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
og, od = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
gallery = []
for i in range(40):
    z = torch.randn(64, 64, device="cuda")
    fake = g(z)
    loss_d = torch.nn.functional.softplus(d(fake.detach())).mean()
    od.zero_grad(); loss_d.backward(); od.step()
    loss_g = torch.nn.functional.softplus(-d(fake)).mean()
    og.zero_grad(); loss_g.backward(); og.step()
    gallery.append(torch.sigmoid(fake.detach()))  # <- kept
