# gpu: 6GiB
"""Heads that are cut out of the last dimension by a step: the fused kernels refuse them."""
import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(512, 1536), nn.Linear(512, 512)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 64, 3, 8).permute(3, 0, 4, 1, 2)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.out(out.transpose(1, 2).reshape(b, n, 512))


model = nn.Sequential(*[Attention() for _ in range(4)]).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    out = model(torch.randn(8, 2048, 512, device="cuda", dtype=torch.bfloat16))
    loss = out.float().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
