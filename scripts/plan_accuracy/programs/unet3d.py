"""A 3d U-Net with instance norm and leaky ReLU on patches of 96 cubed, autocast in half precision; SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv3d(inputs, outputs, 3, stride, 1), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01, True),
                         nn.Conv3d(outputs, outputs, 3, 1, 1), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(0.01, True))


class UNet(nn.Module):
    def __init__(self, widths=(32, 64, 128, 256, 320)):
        super().__init__()
        self.down = nn.ModuleList(double(a, b, 1 if a == 1 else 2) for a, b in zip((1,) + widths, widths))
        turned = widths[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose3d(a, b, 2, 2) for a, b in zip(turned, turned[1:]))
        self.join = nn.ModuleList(double(2 * b, b) for b in turned[1:])
        self.out = nn.Conv3d(widths[0], 3, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
for step in range(3):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(torch.randn(2, 1, 96, 96, 96, device="cuda")), torch.randint(3, (2, 96, 96, 96), device="cuda"))
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
