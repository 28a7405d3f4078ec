import schedulefree
import torch
from lion_pytorch import Lion
from truth import DEVICE, phase, tell

one, two = torch.nn.Linear(2048, 2048).to(DEVICE), torch.nn.Linear(2048, 2048).to(DEVICE)
free, lion = schedulefree.AdamWScheduleFree(one.parameters(), lr=1e-3), Lion(two.parameters(), lr=1e-4)
free.train()
for _ in range(3):
    loss = two(one(torch.randn(64, 2048, device=DEVICE))).square().mean()
    loss.backward()
    for optimizer in (free, lion):
        optimizer.step()
        optimizer.zero_grad()
phase("training")
tell([one, two], [free, lion], steps=3)
