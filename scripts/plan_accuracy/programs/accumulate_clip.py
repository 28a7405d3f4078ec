"""A Trainer class with gradient accumulation, clipping, a warm-up schedule, a loss history and a copy of the state dict kept every second step."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.n_head = n_head
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.attn_dropout, self.resid_dropout = nn.Dropout(0.1), nn.Dropout(0.1)
        self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        att = (q @ k.transpose(-2, -1)) * (1.0 / (k.size(-1) ** 0.5))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class Decoder(nn.Module):
    def __init__(self, vocab=16384, n_embd=640, n_layer=10, n_head=10, block_size=512):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd), nn.Dropout(0.1)
        self.h = nn.ModuleList(nn.ModuleDict(dict(ln_1=nn.LayerNorm(n_embd), attn=CausalSelfAttention(n_embd, n_head, block_size), ln_2=nn.LayerNorm(n_embd),
                                                  mlp=nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))))
                               for _ in range(n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.size(1), device=idx.device)))
        for block in self.h:
            x = x + block["attn"](block["ln_1"](x))
            x = x + block["mlp"](block["ln_2"](x))
        return F.cross_entropy(self.lm_head(self.ln_f(x)).transpose(1, 2), targets)


class Trainer:
    def __init__(self, model, accumulate=4, max_norm=1.0, device="cuda"):
        self.model, self.accumulate, self.max_norm, self.device = model.to(device), accumulate, max_norm, device
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, foreach=True)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda s: min(1.0, (s + 1) / 10))
        self.history, self.snapshot = [], None

    def batch(self, size=16, length=512):
        ids = torch.randint(16384, (size, length + 1))
        return ids[:, :-1].to(self.device), ids[:, 1:].to(self.device)

    def step(self):
        total = 0.0
        for _ in range(self.accumulate):
            loss = self.model(*self.batch()) / self.accumulate
            loss.backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        self.scheduler.step()
        self.history.append(total)
        if len(self.history) % 2:
            self.snapshot = copy.deepcopy(self.model.state_dict())
        return total, norm.item()


trainer = Trainer(Decoder())
for i in range(3):
    loss, norm = trainer.step()
    print(f"step {i} loss {loss:.4f} norm {norm:.3f} lr {trainer.scheduler.get_last_lr()[0]:.1e}")
