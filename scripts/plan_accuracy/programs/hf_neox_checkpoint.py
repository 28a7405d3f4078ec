"""GPT-NeoX from a configuration, weights in bfloat16, gradient_checkpointing_enable, AdamW in bfloat16, gradients accumulated over two micro-batches."""
import argparse

import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--micro_batch_size", type=int, default=4)
parser.add_argument("--grad_accum", type=int, default=2)
parser.add_argument("--seq_len", type=int, default=2048)
parser.add_argument("--max_steps", type=int, default=2)
args = parser.parse_args()

config = GPTNeoXConfig(vocab_size=50432, hidden_size=2048, num_hidden_layers=16, num_attention_heads=16, intermediate_size=8192, rotary_pct=0.25,
                       max_position_embeddings=2048, use_parallel_residual=True)
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = GPTNeoXForCausalLM(config)
torch.set_default_dtype(torch.float32)
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.config.use_cache = False
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01)
for step in range(args.max_steps):
    running = 0.0
    for micro_step in range(args.grad_accum):
        input_ids = torch.randint(0, config.vocab_size, (args.micro_batch_size, args.seq_len), device="cuda")
        loss = model(input_ids=input_ids, labels=input_ids).loss / args.grad_accum
        loss.backward()
        running += loss.detach().float()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {running.item():.4f} grad_norm {grad_norm.item():.4f}")
