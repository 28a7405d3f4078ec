"""ResNet-50 with a feature pyramid and the two heads of RetinaNet over five levels, images of 800x1056, float32; SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inputs, planes, 1, bias=False), nn.BatchNorm2d(planes), nn.ReLU(True),
                                  nn.Conv2d(planes, planes, 3, stride, 1, bias=False), nn.BatchNorm2d(planes), nn.ReLU(True),
                                  nn.Conv2d(planes, 4 * planes, 1, bias=False), nn.BatchNorm2d(4 * planes))
        self.short = nn.Sequential(nn.Conv2d(inputs, 4 * planes, 1, stride, bias=False), nn.BatchNorm2d(4 * planes)) if stride != 1 or inputs != 4 * planes else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Detector(nn.Module):
    def __init__(self, classes=80, anchors=9):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1))
        self.stages, inputs = nn.ModuleList(), 64
        for planes, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            blocks = []
            for number in range(count):
                blocks.append(Bottleneck(inputs, planes, stride if number == 0 else 1))
                inputs = 4 * planes
            self.stages.append(nn.Sequential(*blocks))
        self.inner = nn.ModuleList(nn.Conv2d(c, 256, 1) for c in (512, 1024, 2048))
        self.outer = nn.ModuleList(nn.Conv2d(256, 256, 3, padding=1) for _ in range(3))
        self.p6, self.p7 = nn.Conv2d(2048, 256, 3, 2, 1), nn.Conv2d(256, 256, 3, 2, 1)
        head = lambda outputs: nn.Sequential(*(p for _ in range(4) for p in (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU())), nn.Conv2d(256, outputs, 3, padding=1))
        self.classes, self.boxes = head(classes * anchors), head(4 * anchors)

    def forward(self, x):
        x, kept = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            kept.append(x)
        levels = [inner(one) for inner, one in zip(self.inner, kept[1:])]
        for at in (1, 0):
            levels[at] = levels[at] + F.interpolate(levels[at + 1], size=levels[at].shape[-2:], mode="nearest")
        levels = [outer(one) for outer, one in zip(self.outer, levels)]
        levels.append(self.p6(kept[-1]))
        levels.append(self.p7(F.relu(levels[-1])))
        return [self.classes(one) for one in levels], [self.boxes(one) for one in levels]


model = Detector().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
for step in range(3):
    classes, boxes = model(torch.randn(2, 3, 800, 1056, device="cuda"))
    loss = sum(F.binary_cross_entropy_with_logits(c, torch.zeros_like(c)) for c in classes) + sum(b.abs().mean() for b in boxes)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
