"""A detector of cross-stage blocks in half precision, channels-last, inference of 640x640 images in batches of 16, boxes chosen by score."""
import torch
import torch.nn as nn


def unit(inputs, outputs, window=1, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, window, stride, window // 2, bias=False), nn.BatchNorm2d(outputs), nn.SiLU(True))


class Cross(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        half = width // 2
        self.first, self.other, self.last = unit(width, half), unit(width, half), unit(width, width)
        self.inner = nn.ModuleList(nn.Sequential(unit(half, half), unit(half, half, 3)) for _ in range(count))

    def forward(self, x):
        y = self.first(x)
        for inner in self.inner:
            y = y + inner(y)
        return self.last(torch.cat([y, self.other(x)], 1))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = unit(3, 48, 6 - 3, 2)
        self.stages, inputs = nn.ModuleList(), 48
        for width, count in ((96, 2), (192, 4), (384, 6), (768, 2)):
            self.stages.append(nn.Sequential(unit(inputs, width, 3, 2), Cross(width, count)))
            inputs = width
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * 85, 1) for c in (192, 384, 768))

    def forward(self, x):
        x, found = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            found.append(x)
        rows = [h(f).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 85) for h, f in zip(self.heads, found[1:])]
        return torch.cat(rows, 1).sigmoid()


model = Detector().cuda().half().to(memory_format=torch.channels_last).eval()
with torch.no_grad():
    for _ in range(4):
        rows = model(torch.rand(16, 3, 640, 640, device="cuda", dtype=torch.float16).contiguous(memory_format=torch.channels_last))
        scores, best = rows[..., 4].topk(300, dim=1)
        boxes = rows.gather(1, best.unsqueeze(-1).expand(-1, -1, 4))
