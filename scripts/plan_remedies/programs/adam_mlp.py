# gpu: 2GiB
"""A wide classifier; batches of 16,384 rows are too many."""
import torch
from torch import nn

batch_size = 16384
model = nn.Sequential(nn.Linear(512, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(6):
    x, y = torch.randn(batch_size, 512, device="cuda"), torch.randint(0, 10, (batch_size,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
