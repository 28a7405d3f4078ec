# gpu: 2GiB
"""A loop of accelerate in float32."""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader

accelerator = Accelerator()
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0), 8)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader([torch.randn(256, 512) for _ in range(96)], batch_size=32)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for batch in loader:
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
