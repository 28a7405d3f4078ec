# gpu: 3GiB
"""Gradients that are set to zero and kept, foreach's temporaries, and states of Adam."""
import torch
from torch import nn

model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(10)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    out = model(torch.randn(512, 4096, device="cuda"))
    loss = out.square().mean()
    optimizer.zero_grad(set_to_none=False)
    loss.backward()
    optimizer.step()
