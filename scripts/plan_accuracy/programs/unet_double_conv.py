"""The U-Net of many public repositories: two 3x3 convolutions with batch norm a level, 64 to 1024 channels, transposed up, images of 512x512; RMSprop, float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def double(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                         nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, channels=3, classes=2, widths=(64, 128, 256, 512, 1024)):
        super().__init__()
        self.first = double(channels, widths[0])
        self.down = nn.ModuleList(nn.Sequential(nn.MaxPool2d(2), double(a, b)) for a, b in zip(widths, widths[1:]))
        turned = widths[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in zip(turned, turned[1:]))
        self.join = nn.ModuleList(double(2 * b, b) for b in turned[1:])
        self.out = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = [self.first(x)]
        for down in self.down:
            kept.append(down(kept[-1]))
        x = kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], dim=1))
        return self.out(x)


model = UNet().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.9)
for step in range(4):
    images = torch.rand(4, 3, 512, 512, device="cuda")
    masks = torch.randint(2, (4, 512, 512), device="cuda")
    loss = F.cross_entropy(model(images), masks)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
