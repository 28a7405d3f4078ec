"""ResNet-18 for images of 32x32 with a 3x3 stem, float32, batch 512; SGD; then evaluation with batches of 2000."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Basic(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.short(x))


parts, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
    parts += [Basic(inputs, width, stride), Basic(width, width, 1)]
    inputs = width
model = nn.Sequential(*parts, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
for step in range(4):
    loss = F.cross_entropy(model(torch.randn(512, 3, 32, 32, device="cuda")), torch.randint(10, (512,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    for _ in range(2):
        model(torch.randn(2000, 3, 32, 32, device="cuda")).argmax(1)
