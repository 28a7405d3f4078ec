"""Segmentation with float16 autocast and GradScaler(init_scale=256): dilated pyramid pooling, bilinear upsampling, Dice and cross entropy, deep supervision."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.amp import GradScaler, autocast


class ConvBNReLU(nn.Sequential):
    def __init__(self, cin, cout, k=3, s=1, d=1):
        super().__init__(nn.Conv2d(cin, cout, k, s, padding=d * (k // 2), dilation=d, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class ASPP(nn.Module):
    def __init__(self, cin, cout, rates=(6, 12, 18)):
        super().__init__()
        self.branches = nn.ModuleList([ConvBNReLU(cin, cout, 1)] + [ConvBNReLU(cin, cout, 3, d=r) for r in rates])
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(cin, cout, 1), nn.ReLU())
        self.project = nn.Sequential(ConvBNReLU(cout * (len(rates) + 2), cout, 1), nn.Dropout2d(0.5))

    def forward(self, x):
        pooled = F.interpolate(self.pool(x), size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.project(torch.cat([b(x) for b in self.branches] + [pooled], dim=1))


class SegNet(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        self.stem = nn.Sequential(ConvBNReLU(3, 64, s=2), ConvBNReLU(64, 64), ConvBNReLU(64, 128))
        self.low = nn.Sequential(ConvBNReLU(128, 128, s=2), ConvBNReLU(128, 256))
        self.mid = nn.Sequential(ConvBNReLU(256, 256, s=2), ConvBNReLU(256, 512), ConvBNReLU(512, 512, d=2))
        self.aspp, self.reduce = ASPP(512, 256), ConvBNReLU(256, 48, 1)
        self.decoder = nn.Sequential(ConvBNReLU(304, 256), ConvBNReLU(256, 256), nn.Conv2d(256, classes, 1))
        self.auxiliary = nn.Sequential(ConvBNReLU(512, 128), nn.Conv2d(128, classes, 1))

    def forward(self, x):
        low = self.low(self.stem(x))
        high = self.mid(low)
        up = F.interpolate(self.aspp(high), size=low.shape[-2:], mode="bilinear", align_corners=False)
        out = self.decoder(torch.cat([up, self.reduce(low)], dim=1))
        return [F.interpolate(o, size=x.shape[-2:], mode="bilinear", align_corners=False) for o in (out, self.auxiliary(high))]


def dice_loss(logits, target, eps=1.0):
    probs = logits.float().softmax(dim=1)
    one_hot = F.one_hot(target, logits.size(1)).permute(0, 3, 1, 2).float()
    inter = (probs * one_hot).sum(dim=(0, 2, 3))
    return 1 - ((2 * inter + eps) / (probs.sum(dim=(0, 2, 3)) + one_hot.sum(dim=(0, 2, 3)) + eps)).mean()


net = SegNet().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=10, power=0.9)
scaler = GradScaler("cuda", init_scale=256)
for i in range(3):
    img = torch.randn(8, 3, 384, 384).cuda(non_blocking=True)
    label = torch.randint(0, 21, (8, 384, 384)).cuda(non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    with autocast("cuda", dtype=torch.float16):
        main_out, aux_out = net(img)
        loss = F.cross_entropy(main_out, label) + 0.4 * F.cross_entropy(aux_out, label) + dice_loss(main_out, label)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    print(f"iter {i} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")
