"""DistributedDataParallel around a small language model under autocast, with the loss averaged over the ranks by all_reduce."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

ddp_rank = int(os.environ.get("RANK", 0))
ddp_world_size = int(os.environ.get("WORLD_SIZE", 1))
os.environ["MASTER_ADDR"] = os.environ.get("MASTER_ADDR", "localhost")
os.environ["MASTER_PORT"] = os.environ.get("MASTER_PORT", "29512")
dist.init_process_group("nccl", rank=ddp_rank, world_size=ddp_world_size)
device = f"cuda:{int(os.environ.get('LOCAL_RANK', 0))}"
torch.cuda.set_device(device)
torch.manual_seed(42 + ddp_rank)

n_embd, n_head, n_layer, vocab_size, block_size, batch_size = 1024, 16, 12, 50304, 512, 16


class TinyLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, n_embd)
        self.pos = nn.Parameter(torch.zeros(1, block_size, n_embd))
        layer = nn.TransformerEncoderLayer(n_embd, n_head, 4 * n_embd, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.trunk = nn.TransformerEncoder(layer, n_layer, enable_nested_tensor=False)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(block_size))

    def forward(self, idx, targets):
        h = self.trunk(self.tok(idx) + self.pos[:, :idx.size(1)], mask=self.mask, is_causal=True)
        logits = self.head(h)
        return logits, F.cross_entropy(logits.view(-1, vocab_size), targets.view(-1))


model = TinyLM().to(device)
model = DistributedDataParallel(model, device_ids=[int(device[5:])], bucket_cap_mb=50)
raw_model = model.module
decay = [p for p in raw_model.parameters() if p.dim() >= 2]
no_decay = [p for p in raw_model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=6e-4, betas=(0.9, 0.95), fused=True)
for it in range(3):
    data = torch.randint(vocab_size, (batch_size, block_size + 1))
    x, y = data[:, :-1].contiguous().to(device), data[:, 1:].contiguous().to(device)
    with torch.amp.autocast("cuda", dtype=torch.bfloat16):
        _, loss = model(x, y)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    shown = loss.detach()
    dist.all_reduce(shown, op=dist.ReduceOp.AVG)
    if ddp_rank == 0:
        print(f"iter {it}: loss {shown.item():.4f}, norm {norm.item():.3f}")
dist.destroy_process_group()
