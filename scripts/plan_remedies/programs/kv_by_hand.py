# gpu: 6GiB
"""Generation with a KV cache by hand, joined token by token."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(x), (k, v)


class LM(nn.Module):
    def __init__(self, width=1024, heads=16, depth=16):
        super().__init__()
        self.embed, self.head = nn.Embedding(32000, width), nn.Linear(width, 32000)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(depth))

    def forward(self, ids, cache):
        x = self.embed(ids)
        new = []
        for layer, past in zip(self.layers, cache or [None] * len(self.layers)):
            x, kv = layer(x, past)
            new.append(kv)
        return self.head(x[:, -1]), new


@torch.no_grad()
def generate(model, ids, max_new_tokens):
    cache = None
    step = ids
    for _ in range(max_new_tokens):
        logits, cache = model(step, cache)
        step = logits.argmax(-1, keepdim=True)
        ids = torch.cat([ids, step], 1)
    return ids


model = LM().half().cuda().eval()
prompts = torch.randint(0, 32000, (64, 512), device="cuda")
print(generate(model, prompts, max_new_tokens=200).shape)
