import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
    def forward(self, x, past):
        k, v = self.k(x), self.v(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        return nn.functional.scaled_dot_product_attention(self.q(x), k, v), (k, v)
class Decoder(nn.Module):
    def __init__(self, dim=256, layers=12):
        super().__init__()
        self.embed, self.head = nn.Embedding(500, dim), nn.Linear(dim, 500)
        self.layers = nn.ModuleList([Attention(dim) for _ in range(layers)])
    def forward(self, ids, past=None):
        x, present = self.embed(ids), ()
        for i, layer in enumerate(self.layers):
            a, kv = layer(x, past[i] if past is not None else None)
            x, present = x + a, present + (kv,)
        return self.head(x), present
