"""DenseNet-121, float32; SGD with Nesterov's momentum."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, inputs, growth=32):
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(4 * growth), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, made):
        x = self.conv1(F.relu(self.norm1(torch.cat(made, 1))))
        return self.conv2(F.relu(self.norm2(x)))


class Block(nn.Module):
    def __init__(self, count, inputs):
        super().__init__()
        self.layers = nn.ModuleList(Layer(inputs + 32 * n) for n in range(count))

    def forward(self, x):
        made = [x]
        for layer in self.layers:
            made.append(layer(made))
        return torch.cat(made, 1)


parts, width = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
for number, count in enumerate((6, 12, 24, 16)):
    parts.append(Block(count, width))
    width += 32 * count
    if number < 3:
        parts += [nn.BatchNorm2d(width), nn.ReLU(True), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
        width //= 2
model = nn.Sequential(*parts, nn.BatchNorm2d(width), nn.ReLU(True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
for step in range(3):
    loss = F.cross_entropy(model(torch.randn(32, 3, 224, 224, device="cuda")), torch.randint(1000, (32,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
