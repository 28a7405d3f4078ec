# gpu: 3GiB
# arguments: --batch-size 32 --epochs 2
"""A U-Net whose batch stands in the command."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", "-b", type=int, default=4)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--size", type=int, default=128)
args = parser.parse_args()


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([double(3, 64), double(64, 128), double(128, 256), double(256, 512)])
        self.pool = nn.MaxPool2d(2)
        self.ups = nn.ModuleList([nn.ConvTranspose2d(c * 2, c, 2, 2) for c in (256, 128, 64)])
        self.convs = nn.ModuleList([double(c * 2, c) for c in (256, 128, 64)])
        self.out = nn.Conv2d(64, 2, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            skips.append(x)
        skips.pop()
        for up, conv in zip(self.ups, self.convs):
            x = conv(torch.cat([skips.pop(), up(x)], 1))
        return self.out(x)


model = UNet().to("cuda")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.9)
images = TensorDataset(torch.randn(128, 3, args.size, args.size), torch.zeros(128, args.size, args.size, dtype=torch.long))
loader = DataLoader(images, batch_size=args.batch_size, shuffle=True)
for epoch in range(args.epochs):
    for image, mask in loader:
        image, mask = image.to("cuda"), mask.to("cuda")
        loss = nn.functional.cross_entropy(model(image), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
