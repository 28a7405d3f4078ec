"""GPT-2 small in float32 with AdamW."""
import torch

from gpt_model import GPT

batch_size = 4
model = GPT().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(3):
    ids = torch.randint(50257, (batch_size, 1024), device="cuda")
    loss = model(ids, ids)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
