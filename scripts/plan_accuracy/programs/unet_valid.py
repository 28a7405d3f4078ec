"""The first U-Net: convolutions without padding, 572x572 to 388x388, cropped skips; SGD with momentum, float32 without TF32."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.allow_tf32 = False


def double(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3), nn.ReLU(), nn.Conv2d(outputs, outputs, 3), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.down = nn.ModuleList(double(a, b) for a, b in zip((1,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, a // 2, 2, 2) for a in widths[:0:-1])
        self.join = nn.ModuleList(double(a, a // 2) for a in widths[:0:-1])
        self.out = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        kept = []
        for index, block in enumerate(self.down):
            x = block(x if index == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = up(x)
            skip = kept.pop()
            edge = (skip.shape[-1] - x.shape[-1]) // 2
            x = join(torch.cat([skip[:, :, edge:edge + x.shape[-2], edge:edge + x.shape[-1]], x], dim=1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.99)
for step in range(3):
    loss = F.cross_entropy(model(torch.rand(4, 1, 572, 572, device="cuda")), torch.randint(2, (4, 388, 388), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
