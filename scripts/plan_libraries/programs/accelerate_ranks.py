"""4 ranks: torchrun --nproc-per-node 4."""

import torch
from accelerate import Accelerator
from truth import DEVICE, phase, tell

accelerator = Accelerator(cpu=DEVICE == "cpu")
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(256, 1024)), batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for (x,) in loader:
    loss = (model(x) - x).square().mean()
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    accelerator.gather(loss.detach())
phase("training")
tell(model, optimizer.optimizer, steps=4)
