# gpu: 1536MiB
"""Two loaders made in one line, the validation's batch twice as large."""
import torch
from torch import nn
from torch.utils.data import DataLoader

train_loader, val_loader = DataLoader(range(16384), batch_size=4096), DataLoader(range(16384), batch_size=8192)
model = nn.Sequential(nn.Linear(512, 8192), nn.GELU(), nn.Linear(8192, 8192), nn.GELU(), nn.Linear(8192, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in train_loader:
    x, y = torch.randn(len(batch), 512, device="cuda"), torch.randint(0, 10, (len(batch),), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    for batch in val_loader:
        model(torch.randn(len(batch), 512, device="cuda"))
