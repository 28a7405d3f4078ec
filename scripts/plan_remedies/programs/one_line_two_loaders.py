# gpu: 1300MiB
"""Two loaders with a batch_size each on one line; the second one's is what does not fit."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(8192, 1024), torch.randint(0, 10, (8192,)))
test_loader, train_loader = DataLoader(data, batch_size=64), DataLoader(data, batch_size=4096, shuffle=True)
model = nn.Sequential(*[layer for _ in range(12) for layer in (nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.SiLU(), nn.Dropout(0.1))], nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in test_loader:
            model(x.cuda()).argmax(1)
