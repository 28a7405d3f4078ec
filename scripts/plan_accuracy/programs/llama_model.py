"""A small Llama: RMS norm, rotary positions, grouped-query attention, SwiGLU."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def rotate(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin, cache=None):
        batch, length, _ = x.shape
        q = rotate(self.q(x).view(batch, length, self.heads, self.size).transpose(1, 2), cos, sin)
        k = rotate(self.k(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2), cos, sin)
        v = self.v(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
            cache[:] = k, v
        repeat = self.heads // self.kv_heads
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads, hidden):
        super().__init__()
        self.norm1, self.norm2 = Norm(width), Norm(width)
        self.attention = Attention(width, heads, kv_heads)
        self.gate, self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x, cos, sin, cache=None):
        x = x + self.attention(self.norm1(x), cos, sin, cache)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, vocabulary=32000, width=1024, depth=12, heads=16, kv_heads=4, hidden=2816):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads, hidden) for _ in range(depth))
        self.norm = Norm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.size = width // heads

    def angles(self, start, length, like):
        frequency = 1.0 / 10000 ** (torch.arange(0, self.size, 2, device=like.device).float() / self.size)
        angle = torch.outer(torch.arange(start, start + length, device=like.device).float(), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos().to(like.dtype), angle.sin().to(like.dtype)

    def forward(self, ids, caches=None):
        x = self.tokens(ids)
        start = caches[0][0].shape[2] if caches and caches[0] else 0
        cos, sin = self.angles(start, ids.shape[1], x)
        for index, block in enumerate(self.blocks):
            x = block(x, cos, sin, None if caches is None else caches[index])
        return self.head(self.norm(x))
