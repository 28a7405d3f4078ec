"""Trains a small GPT on random tokens. Nothing in it knows of Faultline.

faultline plan --gpu T4 -- python train_small_gpt.py
"""

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCABULARY, CONTEXT, WIDTH = 32000, 512, 512
batch_size = 64


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.layers(x))


model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(100):
    ids = torch.randint(VOCABULARY, (batch_size, CONTEXT), device="cuda")
    logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
