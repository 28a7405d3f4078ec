# gpu: 16GiB
"""An RBF kernel of all pairs, inside a training (a maximum mean discrepancy)."""
import torch
from torch import nn


def rbf(x, y, sigma=1.0):
    difference = x.unsqueeze(1) - y.unsqueeze(0)
    return torch.exp(-(difference ** 2).sum(-1) / (2 * sigma ** 2))


def mmd(x, y):
    return rbf(x, x).mean() + rbf(y, y).mean() - 2 * rbf(x, y).mean()


encoder = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 128)).cuda()
optimizer = torch.optim.Adam(encoder.parameters())
for step in range(100):
    a, b = torch.randn(8192, 64, device="cuda"), torch.randn(8192, 64, device="cuda")
    loss = mmd(encoder(a), encoder(b))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
