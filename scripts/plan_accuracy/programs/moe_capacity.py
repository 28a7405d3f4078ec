"""A mixture of experts with a fixed capacity: positions by cumulative sums, tokens scattered into one buffer per expert, batched products, a gather back."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CapacityMoE(nn.Module):
    def __init__(self, d_model=1024, d_ff=4096, n_experts=16, capacity_factor=1.25):
        super().__init__()
        self.n_experts, self.capacity_factor = n_experts, capacity_factor
        self.router = nn.Linear(d_model, n_experts, bias=False)
        self.w_in = nn.Parameter(torch.randn(n_experts, d_model, d_ff) / math.sqrt(d_model))
        self.w_out = nn.Parameter(torch.randn(n_experts, d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x):
        tokens, d = x.shape
        capacity = int(self.capacity_factor * tokens / self.n_experts)
        gates = self.router(x).softmax(dim=-1)
        gate, expert = gates.max(dim=-1)
        one_hot = F.one_hot(expert, self.n_experts)
        position = (one_hot.cumsum(dim=0) * one_hot).sum(dim=-1) - 1
        kept = position < capacity
        slot = torch.where(kept, expert * capacity + position, self.n_experts * capacity)
        buffer = x.new_zeros(self.n_experts * capacity + 1, d).scatter(0, slot.unsqueeze(-1).expand(-1, d), x)
        hidden = F.relu(torch.bmm(buffer[:-1].view(self.n_experts, capacity, d), self.w_in)).square()
        outputs = torch.bmm(hidden, self.w_out).reshape(-1, d)
        outputs = torch.cat([outputs, outputs.new_zeros(1, d)])
        combined = outputs.gather(0, slot.unsqueeze(-1).expand(-1, d)) * gate.unsqueeze(-1)
        load = one_hot.float().mean(0)
        return combined, self.n_experts * (load * gates.mean(0)).sum()


class SwitchStack(nn.Module):
    def __init__(self, features=256, d_model=1024, depth=4, classes=1000):
        super().__init__()
        self.proj_in = nn.Linear(features, d_model)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(depth))
        self.moes = nn.ModuleList(CapacityMoE(d_model) for _ in range(depth))
        self.proj_out = nn.Linear(d_model, classes)

    def forward(self, x):
        x, aux = self.proj_in(x), 0.0
        for norm, moe in zip(self.norms, self.moes):
            y, loss = moe(norm(x))
            x, aux = x + y, aux + loss
        return self.proj_out(x), aux


with torch.device("cuda"):
    model = SwitchStack()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(3):
    x, y = torch.randn(16384, 256, device="cuda"), torch.randint(1000, (16384,), device="cuda")
    logits, aux = model(x)
    loss = F.cross_entropy(logits, y) + 0.01 * aux
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(f"step {step}: loss {loss.item():.4f} aux {aux.item():.3f}")
