"""GPT-2 small in bfloat16 autocast, every block checkpointed, fused AdamW."""
import torch

from gpt_model import GPT

batch_size = 16
device = torch.device("cuda")
model = GPT(checkpointing=True).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
for step in range(3):
    ids = torch.randint(50257, (batch_size, 1024), device=device)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(ids, ids)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
