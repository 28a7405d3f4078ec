# gpu: 4GiB
"""Distillation: the teacher computes its graph for nothing."""
import torch
from torch import nn


def encoder(width, depth):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, dropout=0.0), depth)


teacher, student = encoder(512, 12).cuda(), encoder(512, 2).cuda()
optimizer = torch.optim.AdamW(student.parameters(), lr=1e-4)
for step in range(6):
    x = torch.randn(16, 512, 512, device="cuda")
    target = teacher(x)
    loss = nn.functional.mse_loss(student(x), target.detach())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
