"""ResNeXt-50 32x4d: grouped 3x3 convolutions, autocast in bfloat16; SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, planes, stride):
        super().__init__()
        width, outputs = planes * 2, planes * 4
        self.body = nn.Sequential(nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                                  nn.Conv2d(width, width, 3, stride, 1, groups=32, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
                                  nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


parts, inputs = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
for planes, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
    for number in range(count):
        parts.append(Bottleneck(inputs, planes, stride if number == 0 else 1))
        inputs = planes * 4
model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(3):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(torch.randn(48, 3, 224, 224, device="cuda")), torch.randint(1000, (48,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
