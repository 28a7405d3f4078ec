"""Inverted bottlenecks with depthwise 3x3 and 5x5 and squeeze-and-excitation, half precision by autocast, channels-last; RMSprop."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, outputs, window, stride, expansion):
        super().__init__()
        middle = inputs * expansion
        self.expand = nn.Sequential(nn.Conv2d(inputs, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.SiLU()) if expansion > 1 else nn.Identity()
        self.depth = nn.Sequential(nn.Conv2d(middle, middle, window, stride, window // 2, groups=middle, bias=False), nn.BatchNorm2d(middle), nn.SiLU())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(middle, max(1, inputs // 4), 1), nn.SiLU(), nn.Conv2d(max(1, inputs // 4), middle, 1), nn.Sigmoid())
        self.project = nn.Sequential(nn.Conv2d(middle, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.depth(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.same else y


rows = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))
parts, inputs = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU()], 32
for expansion, width, count, stride, window in rows:
    for number in range(count):
        parts.append(Bottleneck(inputs, width, window, stride if number == 0 else 1, expansion))
        inputs = width
model = nn.Sequential(*parts, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))
model = model.cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler("cuda", init_scale=64.0)
for step in range(4):
    images = torch.randn(64, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = F.cross_entropy(model(images), torch.randint(1000, (64,), device="cuda"), label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
