"""Clips of video through a 3-D residual network with factored convolutions, (2+1)-D, float16 autocast and a GradScaler with a small start."""
import torch
import torch.nn as nn


class Conv2Plus1D(nn.Sequential):
    def __init__(self, cin, cout, mid, stride=1):
        super().__init__(nn.Conv3d(cin, mid, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), nn.BatchNorm3d(mid), nn.ReLU(inplace=True),
                         nn.Conv3d(mid, cout, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False))


class Basic3d(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        mid = (cin * cout * 27) // (cin * 9 + 3 * cout)
        self.conv1 = nn.Sequential(Conv2Plus1D(cin, cout, mid, stride), nn.BatchNorm3d(cout), nn.ReLU(inplace=True))
        self.conv2 = nn.Sequential(Conv2Plus1D(cout, cout, mid), nn.BatchNorm3d(cout))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv3d(cin, cout, 1, stride, bias=False), nn.BatchNorm3d(cout))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        return self.relu(self.conv2(self.conv1(x)) + identity)


class VideoNet(nn.Module):
    def __init__(self, num_classes=400):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(64), nn.ReLU(inplace=True))
        layers, channels = [], 64
        for width in (64, 128, 256, 512):
            for i in range(2):
                layers.append(Basic3d(channels, width, 2 if i == 0 and width > 64 else 1))
                channels = width
        self.layers, self.pool, self.fc = nn.Sequential(*layers), nn.AdaptiveAvgPool3d(1), nn.Linear(512, num_classes)

    def forward(self, x):
        return self.fc(self.pool(self.layers(self.stem(x))).flatten(1))


def train(epochs=1, clips=8, frames=16, size=112):
    device = torch.device("cuda")
    model = VideoNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda", init_scale=64)
    criterion = nn.CrossEntropyLoss()
    for i in range(3):
        video = torch.randn(clips, 3, frames, size, size).to(device)
        target = torch.randint(0, 400, (clips,)).to(device)
        with torch.amp.autocast("cuda"):
            output = model(video)
            loss = criterion(output, target)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        top5 = output.topk(5, 1).indices.eq(target[:, None]).any(1).float().mean()
        print(f"clip batch {i} loss {loss.item():.3f} top5 {top5.item():.3f}")


if __name__ == "__main__":
    train(clips=24)
