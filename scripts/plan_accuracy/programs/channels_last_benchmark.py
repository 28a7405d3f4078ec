"""channels_last with cudnn.benchmark = True under bfloat16: inverted bottlenecks with squeeze and excitation, EfficientNet's kind, and two image sizes."""
import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False


class SqueezeExcite(nn.Module):
    def __init__(self, c, r):
        super().__init__()
        self.fc1, self.fc2, self.act = nn.Conv2d(c, r, 1), nn.Conv2d(r, c, 1), nn.SiLU(inplace=True)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True)
        return x * torch.sigmoid(self.fc2(self.act(self.fc1(s))))


class MBConv(nn.Module):
    def __init__(self, cin, cout, expand, kernel, stride):
        super().__init__()
        mid = cin * expand
        layers = []
        if expand != 1:
            layers += [nn.Conv2d(cin, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.SiLU(inplace=True)]
        layers += [nn.Conv2d(mid, mid, kernel, stride, kernel // 2, groups=mid, bias=False), nn.BatchNorm2d(mid), nn.SiLU(inplace=True),
                   SqueezeExcite(mid, max(1, cin // 4)), nn.Conv2d(mid, cout, 1, bias=False), nn.BatchNorm2d(cout)]
        self.block = nn.Sequential(*layers)
        self.use_res = stride == 1 and cin == cout

    def forward(self, x):
        return x + self.block(x) if self.use_res else self.block(x)


def efficientnet(classes=1000):
    settings = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)]
    layers, cin = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU(inplace=True)], 32
    for expand, kernel, stride, cout, repeats in settings:
        for i in range(repeats):
            layers.append(MBConv(cin, cout, expand, kernel, stride if i == 0 else 1))
            cin = cout
    layers += [nn.Conv2d(cin, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Dropout(0.2), nn.Linear(1280, classes))


model = efficientnet().cuda().to(memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1).cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.016, alpha=0.9, momentum=0.9, eps=1e-3, weight_decay=1e-5)
for i, size in enumerate((192, 192, 224, 224)):
    images = torch.randn(128, 3, size, size).cuda().contiguous(memory_format=torch.channels_last)
    target = torch.randint(1000, (128,)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = criterion(model(images), target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    print(f"{i} size {size} loss {loss.item():.4f}")
