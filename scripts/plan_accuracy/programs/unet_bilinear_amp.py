"""A U-Net that goes up by bilinear interpolation, half precision by autocast with a scaler, channels-last, images of 640x960; Adam."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(inputs, outputs, middle=None):
    middle = middle or outputs
    return nn.Sequential(nn.Conv2d(inputs, middle, 3, padding=1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
                         nn.Conv2d(middle, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = double(3, 64)
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), double(a, b)) for a, b in ((64, 128), (128, 256), (256, 512), (512, 512)))
        self.join = nn.ModuleList(double(a, b, a // 2) for a, b in ((1024, 256), (512, 128), (256, 64), (128, 64)))
        self.out = nn.Conv2d(64, 1, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(kept[-1]))
        x = kept.pop()
        for join in self.join:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
            x = join(torch.cat([kept.pop(), x], dim=1))
        return self.out(x)


model = UNet().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
for step in range(4):
    images = torch.rand(4, 3, 640, 960, device="cuda").contiguous(memory_format=torch.channels_last)
    masks = torch.rand(4, 1, 640, 960, device="cuda").round()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.binary_cross_entropy_with_logits(model(images), masks)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
