"""pix2pix: a generator of 4x4 convolutions with stride 2 and skips, a judge of patches, 256x256, float32; Adam for both."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 512, 512, 512, 512)
        self.down = nn.ModuleList([nn.Conv2d(3, 64, 4, 2, 1)] + [nn.Sequential(nn.LeakyReLU(0.2), nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b)) for a, b in zip(widths, widths[1:])])
        ups = [(512, 512), (1024, 512), (1024, 512), (1024, 256), (512, 128), (256, 64)]
        self.up = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b)) for a, b in ups] + [nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Tanh())])

    def forward(self, x):
        kept = []
        for down in self.down:
            x = down(x)
            kept.append(x)
        kept.pop()
        for up in self.up[:-1]:
            x = torch.cat([up(x), kept.pop()], 1)
        return self.up[-1](x)


make = Generator().cuda()
judge = nn.Sequential(nn.Conv2d(6, 64, 4, 2, 1), nn.LeakyReLU(0.2, True), nn.Conv2d(64, 128, 4, 2, 1, bias=False), nn.BatchNorm2d(128), nn.LeakyReLU(0.2, True),
                      nn.Conv2d(128, 256, 4, 2, 1, bias=False), nn.BatchNorm2d(256), nn.LeakyReLU(0.2, True), nn.Conv2d(256, 512, 4, 1, 1, bias=False), nn.BatchNorm2d(512), nn.LeakyReLU(0.2, True), nn.Conv2d(512, 1, 4, 1, 1)).cuda()
makes, judges = (torch.optim.Adam(m.parameters(), lr=2e-4, betas=(0.5, 0.999)) for m in (make, judge))
for step in range(3):
    one, other = torch.rand(8, 3, 256, 256, device="cuda"), torch.rand(8, 3, 256, 256, device="cuda")
    fake = make(one)
    said, true = judge(torch.cat([one, fake.detach()], 1)), judge(torch.cat([one, other], 1))
    loss = (F.binary_cross_entropy_with_logits(said, torch.zeros_like(said)) + F.binary_cross_entropy_with_logits(true, torch.ones_like(true))) / 2
    judges.zero_grad()
    loss.backward()
    judges.step()
    said = judge(torch.cat([one, fake], 1))
    loss = F.binary_cross_entropy_with_logits(said, torch.ones_like(said)) + 100 * F.l1_loss(fake, other)
    makes.zero_grad()
    loss.backward()
    makes.step()
