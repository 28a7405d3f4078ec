"""A hierarchical transformer with shifted windows: partition by view and permute, roll, a relative position table, an attention mask, patch merging."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def window_partition(x, window_size):
    B, H, W, C = x.shape
    x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size * window_size, C)


def window_reverse(windows, window_size, H, W):
    B = windows.shape[0] // (H * W // window_size // window_size)
    x = windows.view(B, H // window_size, W // window_size, window_size, window_size, -1)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)


class SwinBlock(nn.Module):
    def __init__(self, dim, resolution, heads, window=7, shift=0):
        super().__init__()
        self.resolution, self.heads, self.window = resolution, heads, window
        self.shift = shift if resolution > window else 0
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.table = nn.Parameter(torch.zeros((2 * window - 1) ** 2, heads))
        coords = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (coords[:, :, None] - coords[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[..., 0] * (2 * window - 1) + relative[..., 1])
        mask = None
        if self.shift:
            region = torch.zeros(1, resolution, resolution, 1)
            slices = (slice(0, -window), slice(-window, -self.shift), slice(-self.shift, None))
            for number, (h, w) in enumerate((h, w) for h in slices for w in slices):
                region[:, h, w] = number
            region = window_partition(region, window).squeeze(-1)
            difference = region.unsqueeze(1) - region.unsqueeze(2)
            mask = difference.masked_fill(difference != 0, -100.0).masked_fill(difference == 0, 0.0)
        self.register_buffer("mask", mask)

    def attention(self, x):
        B_, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B_, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * (C // self.heads) ** -0.5) @ k.transpose(-2, -1)
        attn = attn + self.table[self.index.view(-1)].view(N, N, -1).permute(2, 0, 1).contiguous().unsqueeze(0)
        if self.mask is not None:
            nW = self.mask.shape[0]
            attn = (attn.view(B_ // nW, nW, self.heads, N, N) + self.mask.unsqueeze(1).unsqueeze(0)).view(-1, self.heads, N, N)
        return self.proj((F.softmax(attn, dim=-1) @ v).transpose(1, 2).reshape(B_, N, C))

    def forward(self, x):
        H, (B, L, C) = self.resolution, x.shape
        y = self.norm1(x).view(B, H, H, C)
        if self.shift:
            y = torch.roll(y, shifts=(-self.shift, -self.shift), dims=(1, 2))
        y = window_reverse(self.attention(window_partition(y, self.window)), self.window, H, H)
        if self.shift:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + y.view(B, L, C)
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, resolution, dim):
        super().__init__()
        self.resolution, self.norm, self.reduction = resolution, nn.LayerNorm(4 * dim), nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x):
        B, L, C = x.shape
        x = x.view(B, self.resolution, self.resolution, C)
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x.view(B, -1, 4 * C)))


class Swin(nn.Module):
    def __init__(self, dim=96, depths=(2, 2, 6, 2), heads=(3, 6, 12, 24), classes=1000):
        super().__init__()
        self.patch_embed, self.norm_in = nn.Conv2d(3, dim, 4, 4), nn.LayerNorm(dim)
        layers, resolution = [], 56
        for stage, (depth, head) in enumerate(zip(depths, heads)):
            layers += [SwinBlock(dim, resolution, head, shift=0 if i % 2 == 0 else 3) for i in range(depth)]
            if stage < len(depths) - 1:
                layers.append(PatchMerging(resolution, dim))
                dim, resolution = dim * 2, resolution // 2
        self.layers, self.norm, self.head = nn.Sequential(*layers), nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.norm_in(self.patch_embed(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(self.layers(x)).mean(1))


model = Swin().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
for step in range(3):
    samples, targets = torch.randn(64, 3, 224, 224).cuda(), torch.randint(0, 1000, (64,)).cuda()
    loss = F.cross_entropy(model(samples), targets, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    print(f"[{step}] loss {loss.item():.4f}")
