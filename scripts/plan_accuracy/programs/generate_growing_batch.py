"""Generation with a preallocated KV cache for batches that grow: 1, 4, 16, 64; sampling with temperature and top-k in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class KVCache(nn.Module):
    def __init__(self, max_batch, max_seq, heads, head_dim, dtype=torch.bfloat16):
        super().__init__()
        shape = (max_batch, heads, max_seq, head_dim)
        self.register_buffer("k_cache", torch.zeros(shape, dtype=dtype))
        self.register_buffer("v_cache", torch.zeros(shape, dtype=dtype))

    def update(self, input_pos, k_val, v_val):
        self.k_cache[:, :, input_pos] = k_val
        self.v_cache[:, :, input_pos] = v_val
        return self.k_cache, self.v_cache


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.kv_cache = heads, None
        self.norm1, self.norm2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.w1, self.w2 = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x, mask, input_pos):
        bsz, seqlen, dim = x.shape
        q, k, v = (t.view(bsz, seqlen, self.heads, -1).transpose(1, 2) for t in self.wqkv(self.norm1(x)).split(dim, dim=-1))
        k, v = self.kv_cache.update(input_pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.wo(y.transpose(1, 2).contiguous().view(bsz, seqlen, dim))
        return x + self.w2(F.gelu(self.w1(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, vocab=32000, dim=2048, layers=12, heads=16, max_seq=1024):
        super().__init__()
        self.dim, self.heads, self.max_seq = dim, heads, max_seq
        self.embed, self.pos = nn.Embedding(vocab, dim), nn.Embedding(max_seq, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.norm, self.out = nn.RMSNorm(dim), nn.Linear(dim, vocab, bias=False)

    def setup_caches(self, batch):
        for block in self.blocks:
            block.kv_cache = KVCache(batch, self.max_seq, self.heads, self.dim // self.heads).to("cuda")
        self.causal_mask = torch.tril(torch.ones(self.max_seq, self.max_seq, dtype=torch.bool, device="cuda"))

    def forward(self, idx, input_pos):
        mask = self.causal_mask[None, None, input_pos]
        x = self.embed(idx) + self.pos(input_pos)
        for block in self.blocks:
            x = block(x, mask, input_pos)
        return self.out(self.norm(x))


def sample(logits, temperature=0.8, top_k=200):
    logits = logits[:, -1] / temperature
    v, _ = torch.topk(logits, top_k)
    logits = torch.where(logits < v[:, -1:], -float("Inf"), logits)
    return torch.multinomial(F.softmax(logits, dim=-1), num_samples=1).int()


@torch.no_grad()
def generate(model, prompt, max_new_tokens):
    B, T = prompt.shape
    seq = torch.empty(B, T + max_new_tokens, dtype=prompt.dtype, device=prompt.device)
    seq[:, :T] = prompt
    input_pos = torch.arange(0, T, device=prompt.device)
    next_token = sample(model(prompt, input_pos))
    seq[:, T:T + 1] = next_token
    input_pos = torch.tensor([T], device=prompt.device, dtype=torch.int)
    for i in range(1, max_new_tokens):
        next_token = sample(model(next_token, input_pos))
        seq[:, T + i:T + i + 1] = next_token
        input_pos += 1
    return seq


with torch.device("meta"):
    model = Model()
model = model.to(dtype=torch.bfloat16).to_empty(device="cuda").eval()
for p in model.parameters():
    nn.init.normal_(p, std=0.02)
for batch in (1, 4, 16, 64):
    model.setup_caches(batch)
    out = generate(model, torch.randint(32000, (batch, 200), device="cuda", dtype=torch.int), 24)
    print(f"batch {batch}: {tuple(out.shape)}")
