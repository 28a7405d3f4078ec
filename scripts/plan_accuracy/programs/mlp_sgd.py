"""A plain network with SGD and momentum, data from a DataLoader with pinned memory, early stop by the loss."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(8192, 1024), torch.randint(100, (8192,)))
loader = DataLoader(data, batch_size=1024, shuffle=True, pin_memory=True)
model = nn.Sequential(nn.Linear(1024, 8192), nn.BatchNorm1d(8192), nn.GELU(), nn.Dropout(0.2), nn.Linear(8192, 8192), nn.Tanh(), nn.Linear(8192, 100)).to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
best = float("inf")
for x, y in loader:
    x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if torch.isnan(loss) or loss.item() > 2 * best:
        break
    best = min(best, loss.item())
model.eval()
with torch.no_grad():
    right = sum((model(x.cuda()).argmax(1) == y.cuda()).sum().item() for x, y in loader)
print(right / len(data))
