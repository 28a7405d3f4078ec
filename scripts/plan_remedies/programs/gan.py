# gpu: 2GiB
"""A DCGAN with two optimizers."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

BATCH_SIZE = 512
nz, ngf = 100, 64


def up(i, o, k, s, p):
    return nn.Sequential(nn.ConvTranspose2d(i, o, k, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True))


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2))


G = nn.Sequential(up(nz, ngf * 8, 4, 1, 0), up(ngf * 8, ngf * 4, 4, 2, 1), up(ngf * 4, ngf * 2, 4, 2, 1),
                  up(ngf * 2, ngf, 4, 2, 1), nn.ConvTranspose2d(ngf, 3, 4, 2, 1), nn.Tanh()).cuda()
D = nn.Sequential(nn.Conv2d(3, ngf, 4, 2, 1), nn.LeakyReLU(0.2), down(ngf, ngf * 2), down(ngf * 2, ngf * 4),
                  down(ngf * 4, ngf * 8), nn.Conv2d(ngf * 8, 1, 4, 1, 0)).cuda()
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
criterion = nn.BCEWithLogitsLoss()
loader = DataLoader(TensorDataset(torch.randn(2048, 3, 64, 64)), batch_size=BATCH_SIZE, shuffle=True, drop_last=True)
for epoch in range(2):
    for (real,) in loader:
        real = real.cuda()
        opt_d.zero_grad()
        errD_real = criterion(D(real).view(-1), torch.ones(real.size(0), device="cuda"))
        noise = torch.randn(real.size(0), nz, 1, 1, device="cuda")
        fake = G(noise)
        errD_fake = criterion(D(fake.detach()).view(-1), torch.zeros(real.size(0), device="cuda"))
        (errD_real + errD_fake).backward()
        opt_d.step()
        opt_g.zero_grad()
        errG = criterion(D(fake).view(-1), torch.ones(real.size(0), device="cuda"))
        errG.backward()
        opt_g.step()
