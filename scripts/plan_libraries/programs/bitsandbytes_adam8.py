import bitsandbytes as bnb
import torch
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).to(DEVICE)
optimizer = bnb.optim.AdamW8bit(model.parameters(), lr=1e-3)
for _ in range(3):
    loss = model(torch.randn(32, 1024, device=DEVICE)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
