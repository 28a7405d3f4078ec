"""A UNet with group norm, upsampling and skip connections, trained to remove noise; Adam."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Convolutions(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU(),
                                    nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

    def forward(self, x):
        return self.layers(x)


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512)):
        super().__init__()
        self.down = nn.ModuleList()
        inputs = 3
        for width in widths:
            self.down.append(Convolutions(inputs, width))
            inputs = width
        self.up = nn.ModuleList()
        self.join = nn.ModuleList()
        for width in reversed(widths[:-1]):
            self.up.append(nn.ConvTranspose2d(inputs, width, 2, 2))
            self.join.append(Convolutions(width * 2, width))
            inputs = width
        self.out = nn.Conv2d(inputs, 3, 1)

    def forward(self, x):
        skips = []
        for index, block in enumerate(self.down):
            x = block(x if index == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        skips.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), skips.pop()], dim=1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(3):
    clean = torch.rand(8, 3, 256, 256, device="cuda")
    noise = torch.randn_like(clean)
    loss = F.mse_loss(model(clean + 0.1 * noise), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
