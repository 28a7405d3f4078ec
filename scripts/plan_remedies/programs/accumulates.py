# gpu: 5GiB
"""Accumulates gradients already; the micro-batch itself is too large."""
import torch
from torch import nn

micro_batch_size = 24
accumulation_steps = 4
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, norm_first=True), 10).cuda()
head = nn.Linear(512, 1000).cuda()
optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters()], lr=3e-4)
for i in range(16):
    x = torch.randn(micro_batch_size, 512, 512, device="cuda")
    y = torch.randint(0, 1000, (micro_batch_size,), device="cuda")
    loss = nn.functional.cross_entropy(head(model(x).mean(1)), y) / accumulation_steps
    loss.backward()
    if (i + 1) % accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
