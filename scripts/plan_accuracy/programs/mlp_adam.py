"""A plain network with Adam."""
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    x = torch.randn(2048, 4096, device="cuda")
    y = torch.randint(10, (2048,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
