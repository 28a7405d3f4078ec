"""Batches of different lengths, padded to the longest of each; a small GPT under autocast."""
import torch

from gpt_model import GPT

torch.manual_seed(0)
lengths = [611, 202, 960, 87, 743, 455, 1012, 333, 880, 150]
model = GPT(width=512, depth=8, heads=8).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for length in lengths:
    ids = torch.randint(50257, (8, length), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(ids, ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
