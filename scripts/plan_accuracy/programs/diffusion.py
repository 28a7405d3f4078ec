"""A diffusion step: residual convolutions with attention, time embedding, an average of the weights kept beside the model."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, inputs, outputs, time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(32, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.dropout(F.silu(self.norm2(y)), 0.1, self.training))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.GroupNorm(32, width), nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, width, height, length = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, 3, 4, width // 4, height * length).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(batch, width, height, length))


class Model(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.down1, self.down2 = Residual(width, 2 * width, 4 * width), Residual(2 * width, 2 * width, 4 * width)
        self.middle, self.attention = Residual(2 * width, 2 * width, 4 * width), Attention(2 * width)
        self.up1, self.up2 = Residual(4 * width, 2 * width, 4 * width), Residual(4 * width, width, 4 * width)
        self.width = width

    def forward(self, x, t):
        frequency = torch.exp(torch.arange(self.width // 2, device=x.device) * (-math.log(10000) / (self.width // 2)))
        t = self.time(torch.cat([(t[:, None] * frequency).sin(), (t[:, None] * frequency).cos()], dim=-1))
        a = self.down1(self.first(x), t)
        b = self.down2(F.avg_pool2d(a, 2), t)
        c = self.attention(self.middle(F.avg_pool2d(b, 2), t))
        c = self.up1(torch.cat([F.interpolate(c, scale_factor=2), b], dim=1), t)
        return self.last(self.up2(torch.cat([F.interpolate(c, scale_factor=2), a], dim=1), t))


model = Model().cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
for step in range(3):
    x, noise, t = torch.rand(16, 3, 64, 64, device="cuda"), torch.randn(16, 3, 64, 64, device="cuda"), torch.randint(1000, (16,), device="cuda")
    loss = F.mse_loss(model(x + noise, t.float()), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for p, q in zip(average.parameters(), model.parameters()):
            p.lerp_(q, 0.01)
