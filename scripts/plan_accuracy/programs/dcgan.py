"""DCGAN on 64x64, float32; Adam for both; the discriminator sees a real and a made batch in turn."""
import torch
import torch.nn as nn


def up(inputs, outputs, stride, padding):
    return [nn.ConvTranspose2d(inputs, outputs, 4, stride, padding, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(True)]


def down(inputs, outputs):
    return [nn.Conv2d(inputs, outputs, 4, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.LeakyReLU(0.2, True)]


make = nn.Sequential(*up(100, 512, 1, 0), *up(512, 256, 2, 1), *up(256, 128, 2, 1), *up(128, 64, 2, 1), nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh()).cuda()
judge = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), *down(64, 128), *down(128, 256), *down(256, 512), nn.Conv2d(512, 1, 4, 1, 0, bias=False), nn.Sigmoid()).cuda()
loss = nn.BCELoss()
makes, judges = (torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in (make, judge))
for step in range(4):
    real = torch.rand(256, 3, 64, 64, device="cuda") * 2 - 1
    judge.zero_grad()
    loss(judge(real).view(-1), torch.full((256,), 1.0, device="cuda")).backward()
    fake = make(torch.randn(256, 100, 1, 1, device="cuda"))
    loss(judge(fake.detach()).view(-1), torch.full((256,), 0.0, device="cuda")).backward()
    judges.step()
    make.zero_grad()
    loss(judge(fake).view(-1), torch.full((256,), 1.0, device="cuda")).backward()
    makes.step()
