"""Dilated ResNet-50 with atrous pyramid pooling (6, 12, 18), autocast in half precision, images of 513x513; SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, planes, stride, dilation):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inputs, planes, 1, bias=False), nn.BatchNorm2d(planes), nn.ReLU(True),
                                  nn.Conv2d(planes, planes, 3, stride, dilation, dilation, bias=False), nn.BatchNorm2d(planes), nn.ReLU(True),
                                  nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes))
        self.short = nn.Sequential(nn.Conv2d(inputs, 4 * planes, 1, stride, bias=False), nn.BatchNorm2d(4 * planes)) if stride != 1 or inputs != 4 * planes else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


def unit(inputs, window, dilation=1):
    return nn.Sequential(nn.Conv2d(inputs, 256, window, padding=dilation if window == 3 else 0, dilation=dilation, bias=False), nn.BatchNorm2d(256), nn.ReLU())


class DeepLab(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        parts, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
        for planes, count, stride, dilation in ((64, 3, 1, 1), (128, 4, 2, 1), (256, 6, 2, 1), (512, 3, 1, 2)):
            for number in range(count):
                parts.append(Bottleneck(inputs, planes, stride if number == 0 else 1, dilation))
                inputs = 4 * planes
        self.backbone = nn.Sequential(*parts)
        self.branches = nn.ModuleList([unit(2048, 1), unit(2048, 3, 6), unit(2048, 3, 12), unit(2048, 3, 18)])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), unit(2048, 1))
        self.join, self.out = unit(5 * 256, 1), nn.Sequential(unit(256, 3), nn.Conv2d(256, classes, 1))

    def forward(self, x):
        y = self.backbone(x)
        found = [branch(y) for branch in self.branches]
        found.append(F.interpolate(self.pool(y), size=y.shape[-2:], mode="bilinear", align_corners=False))
        return F.interpolate(self.out(self.join(torch.cat(found, 1))), size=x.shape[-2:], mode="bilinear", align_corners=False)


model = DeepLab().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.007, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
for step in range(3):
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(torch.randn(8, 3, 513, 513, device="cuda")), torch.randint(21, (8, 513, 513), device="cuda"))
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
