import torch
from pytorch_metric_learning import losses, miners
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 128)).to(DEVICE)
loss_of = losses.ArcFaceLoss(100, 128).to(DEVICE)
miner = miners.MultiSimilarityMiner()
optimizer = torch.optim.Adam([*model.parameters(), *loss_of.parameters()])
for _ in range(3):
    y = torch.randint(0, 100, (64,), device=DEVICE)
    embedded = model(torch.randn(64, 512, device=DEVICE))
    loss = loss_of(embedded, y, miner(embedded, y))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell([model, loss_of], optimizer, steps=3)
