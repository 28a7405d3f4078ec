"""A DataLoader with pinned memory, copies that do not block, and the batch used at once.

Copy and use are on one stream and run in order; PyTorch keeps the pinned block until the copy has run. There is no race.
"""
import torch
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(1024, 256), torch.randint(0, 10, (1024,)))
loader = DataLoader(data, batch_size=64, pin_memory=True)
model = torch.nn.Linear(256, 10).cuda()
for x, y in loader:
    x = x.cuda(non_blocking=True)
    y = y.cuda(non_blocking=True)
    loss = torch.nn.functional.cross_entropy(model(x), y)
print(loss.item())
