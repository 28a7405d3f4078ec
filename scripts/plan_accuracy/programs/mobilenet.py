"""Inverted residuals with depthwise convolutions and squeeze-excitation, RMSprop, bfloat16 autocast."""
import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, inputs, hidden, outputs, stride):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.Hardswish())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, hidden // 4, 1), nn.ReLU(), nn.Conv2d(hidden // 4, hidden, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.same = stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.depth(self.expand(x))
        y = self.project(y * self.squeeze(y))
        return x + y if self.same else y


layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()]
inputs = 16
for outputs, count, stride in ((24, 2, 2), (40, 3, 2), (80, 4, 2), (112, 2, 1), (160, 3, 2)):
    for index in range(count):
        layers.append(Block(inputs, inputs * 4, outputs, stride if index == 0 else 1))
        inputs = outputs
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), 0.01, momentum=0.9)
for step in range(3):
    images, labels = torch.randn(128, 3, 224, 224, device="cuda"), torch.randint(1000, (128,), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
