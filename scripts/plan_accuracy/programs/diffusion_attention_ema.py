"""A denoising UNet with group norm, time embeddings and self-attention at the lower resolutions; a moving average of the weights is kept and sampled from."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, cin, cout, emb_dim):
        super().__init__()
        self.in_layers = nn.Sequential(nn.GroupNorm(32, cin), nn.SiLU(), nn.Conv2d(cin, cout, 3, padding=1))
        self.emb = nn.Linear(emb_dim, cout)
        self.out_layers = nn.Sequential(nn.GroupNorm(32, cout), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(cout, cout, 3, padding=1))
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, emb):
        h = self.in_layers(x) + self.emb(F.silu(emb))[:, :, None, None]
        return self.skip(x) + self.out_layers(h)


class AttentionBlock(nn.Module):
    def __init__(self, channels, heads=4):
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(32, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.proj = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        y = x.reshape(b, c, h * w)
        q, k, v = self.qkv(self.norm(y)).reshape(b * self.heads, 3 * c // self.heads, h * w).chunk(3, dim=1)
        weight = torch.softmax(torch.einsum("bct,bcs->bts", q, k) / math.sqrt(c // self.heads), dim=-1)
        out = torch.einsum("bts,bcs->bct", weight, v).reshape(b, c, h * w)
        return (y + self.proj(out)).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, base=128, mults=(1, 2, 2, 4), attend=(2, 3)):
        super().__init__()
        emb = base * 4
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.stem = nn.Conv2d(3, base, 3, padding=1)
        self.down, self.up, chans, ch = nn.ModuleList(), nn.ModuleList(), [base], base
        for level, m in enumerate(mults):
            attn = AttentionBlock(base * m) if level in attend else nn.Identity()
            pool = nn.Conv2d(base * m, base * m, 3, 2, 1) if level < len(mults) - 1 else nn.Identity()
            self.down.append(nn.ModuleList([ResBlock(ch, base * m, emb), attn, pool]))
            ch = base * m
            chans.append(ch)
        self.mid = nn.ModuleList([ResBlock(ch, ch, emb), AttentionBlock(ch), ResBlock(ch, ch, emb)])
        for level, m in reversed(list(enumerate(mults))):
            attn = AttentionBlock(base * m) if level in attend else nn.Identity()
            self.up.append(nn.ModuleList([ResBlock(ch + chans.pop(), base * m, emb), attn]))
            ch = base * m
        self.head = nn.Sequential(nn.GroupNorm(32, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, t):
        emb, x, skips = self.time(timestep_embedding(t, self.base)), self.stem(x), []
        for res, attn, pool in self.down:
            x = attn(res(x, emb))
            skips.append(x)
            x = pool(x)
        x = self.mid[2](self.mid[1](self.mid[0](x, emb)), emb)
        for res, attn in self.up:
            skip = skips.pop()
            if x.shape[-1] != skip.shape[-1]:
                x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = attn(res(torch.cat([x, skip], dim=1), emb))
        return self.head(x)


@torch.no_grad()
def update_ema(target, source, rate=0.9999):
    for targ, src in zip(target.parameters(), source.parameters()):
        targ.mul_(rate).add_(src, alpha=1 - rate)


device = "cuda"
model = UNet().to(device)
ema = copy.deepcopy(model).eval().requires_grad_(False)
alphas_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=device), dim=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(3):
    x0 = torch.rand(48, 3, 64, 64, device=device) * 2 - 1
    t = torch.randint(0, 1000, (48,), device=device)
    noise = torch.randn_like(x0)
    a = alphas_bar[t].view(-1, 1, 1, 1)
    loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_ema(ema, model)
    print(f"step {step} mse {loss.item():.4f}")
with torch.no_grad():
    x = torch.randn(64, 3, 64, 64, device=device)
    for i in (999, 500, 0):
        a = alphas_bar[i]
        eps = ema(x, torch.full((64,), i, device=device))
        x = (x - (1 - a).sqrt() * eps) / a.sqrt()
print("sampled", tuple(x.shape))
