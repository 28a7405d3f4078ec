"""FSDP2: fully_shard on every block and on the whole, parameters built on the meta device and filled after sharding, a mesh of one GPU."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wqkv, self.wo = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.feed_forward = FeedForward(dim, int(8 * dim / 3 / 256) * 256)

    def forward(self, x):
        bsz, seqlen, dim = x.shape
        xq, xk, xv = (t.view(bsz, seqlen, self.n_heads, -1).transpose(1, 2) for t in self.wqkv(self.attention_norm(x)).chunk(3, dim=-1))
        out = F.scaled_dot_product_attention(xq, xk, xv, is_causal=True)
        h = x + self.wo(out.transpose(1, 2).contiguous().view(bsz, seqlen, dim))
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, vocab_size=32000, dim=2048, n_layers=10, n_heads=16):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(TransformerBlock(dim, n_heads) for _ in range(n_layers))
        self.norm = nn.RMSNorm(dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def reset_parameters(self):
        for module in self.modules():
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))


if __name__ == "__main__":
    for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "29514", "RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}.items():
        os.environ.setdefault(key, value)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    init_process_group("nccl")
    mesh = init_device_mesh("cuda", (int(os.environ["WORLD_SIZE"]),), mesh_dim_names=("dp",))
    with torch.device("meta"):
        model = Transformer()
    mp_policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for i, block in enumerate(model.layers):
        fully_shard(block, mesh=mesh, mp_policy=mp_policy, reshard_after_forward=i < len(model.layers) - 1)
    fully_shard(model, mesh=mesh, mp_policy=mp_policy)
    model.to_empty(device="cuda")
    with torch.no_grad():
        model.reset_parameters()
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
    for step in range(3):
        batch = torch.randint(32000, (4, 1025), device=device)
        pred = model(batch[:, :-1])
        loss = F.cross_entropy(pred.flatten(0, 1).float(), batch[:, 1:].flatten())
        loss.backward()
        total_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optim.step()
        optim.zero_grad()
        print(f"step: {step} loss: {loss.item():.4f} grad_norm: {total_norm.full_tensor().item():.4f}")
    destroy_process_group()
