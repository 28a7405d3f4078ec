"""VGG-16 with batch norm, float32 (TF32), cudnn.benchmark; SGD."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
layers, inputs = [], 3
for width in (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M"):
    if width == "M":
        layers.append(nn.MaxPool2d(2))
    else:
        layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
        inputs = width
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(7), nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(),
                      nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 1000)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
for step in range(3):
    loss = F.cross_entropy(model(torch.randn(32, 3, 224, 224, device="cuda")), torch.randint(1000, (32,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
