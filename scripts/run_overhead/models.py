"""The two programs that are measured: GPT-2 small, where kernels take the time, and a deep narrow network, where launching them does."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(self.before_attention(x)).chunk(3, dim=-1)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):
    def __init__(self, layers=12, width=768, heads=12, vocabulary=50304, context=1024):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.last(x)).flatten(0, 1), targets.flatten())


def gpt(device="cuda", batch=8, length=1024, **sizes):
    """One training step of it, as a function."""
    torch.manual_seed(0)
    model = Gpt(context=length, **sizes).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    vocabulary = model.tokens.num_embeddings
    ids = torch.randint(0, vocabulary, (batch, length + 1), device=device)

    def step():
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
        gradients = [p.grad for p in model.parameters()]
        optimizer.zero_grad(set_to_none=True)
        return loss, gradients

    return step


def mlp(device="cuda", layers=20, width=256, batch=64):
    torch.manual_seed(0)
    model = nn.Sequential(*[part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    x, y = torch.randn(batch, width, device=device), torch.randn(batch, width, device=device)

    def step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        gradients = [p.grad for p in model.parameters()]
        optimizer.zero_grad(set_to_none=True)
        return loss, gradients

    return step


PROGRAMS = {"gpt": gpt, "mlp": mlp}
