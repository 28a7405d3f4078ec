# gpu: 3GiB
"""Trains well, and validates without no_grad while it keeps the losses."""
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(range(160), batch_size=8):
    x, y = torch.randn(256, 512, device="cuda"), torch.randint(0, 10, (256,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
losses = []
for batch in DataLoader(range(800), batch_size=8):
    x, y = torch.randn(4096, 512, device="cuda"), torch.randint(0, 10, (4096,), device="cuda")
    out = model(x)
    losses.append(nn.functional.cross_entropy(out, y))
