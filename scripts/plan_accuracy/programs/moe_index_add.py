"""A mixture of experts: every expert takes the tokens routed to it (torch.where on a one-hot mask) and adds its result back with index_add_."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Expert(nn.Module):
    def __init__(self, hidden_dim, ffn_dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(hidden_dim, ffn_dim, bias=False), nn.Linear(hidden_dim, ffn_dim, bias=False)
        self.w2 = nn.Linear(ffn_dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMoeBlock(nn.Module):
    def __init__(self, hidden_dim, ffn_dim, num_experts=8, top_k=2):
        super().__init__()
        self.num_experts, self.top_k = num_experts, top_k
        self.gate = nn.Linear(hidden_dim, num_experts, bias=False)
        self.experts = nn.ModuleList([Expert(hidden_dim, ffn_dim) for _ in range(num_experts)])

    def forward(self, hidden_states):
        shape = hidden_states.shape
        hidden_states = hidden_states.view(-1, shape[-1])
        router_logits = self.gate(hidden_states)
        weights, selected = torch.topk(F.softmax(router_logits, dim=1, dtype=torch.float), self.top_k, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(hidden_states.dtype)
        final = torch.zeros_like(hidden_states)
        expert_mask = F.one_hot(selected, num_classes=self.num_experts).permute(2, 1, 0)
        for expert_idx, expert in enumerate(self.experts):
            idx, top_x = torch.where(expert_mask[expert_idx])
            current = expert(hidden_states[top_x]) * weights[top_x, idx, None]
            final.index_add_(0, top_x, current.to(hidden_states.dtype))
        return final.view(shape), router_logits


class Layer(nn.Module):
    def __init__(self, dim, heads, ffn):
        super().__init__()
        self.ln1, self.ln2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True, bias=False)
        self.moe = SparseMoeBlock(dim, ffn)

    def forward(self, x, mask):
        h = self.ln1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False, is_causal=True)[0]
        out, logits = self.moe(self.ln2(x))
        return x + out, logits


dim, vocab, seq = 768, 32000, 512
layers = nn.ModuleList(Layer(dim, 12, 2048) for _ in range(6))
net = nn.ModuleDict({"embed": nn.Embedding(vocab, dim), "layers": layers, "head": nn.Linear(dim, vocab, bias=False)}).to("cuda", torch.bfloat16)
mask = torch.full((seq, seq), float("-inf"), device="cuda", dtype=torch.bfloat16).triu(1)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
for step in range(3):
    tokens = torch.randint(vocab, (16, seq), device="cuda")
    x, gates = net["embed"](tokens), []
    for layer in net["layers"]:
        x, logits = layer(x, mask)
        gates.append(logits)
    lm_loss = F.cross_entropy(net["head"](x).float().view(-1, vocab), tokens.view(-1))
    probs = torch.cat(gates).float().softmax(-1)
    balance = 8 * (F.one_hot(probs.argmax(-1), 8).float().mean(0) * probs.mean(0)).sum()
    loss = lm_loss + 0.02 * balance
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} lm {lm_loss.item():.3f} balance {balance.item():.3f}")
