"""Training of a small Llama with bfloat16 weights, AdamW, gradient accumulation."""
import torch
import torch.nn.functional as F

from llama_model import Llama

model = Llama().to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(2):
    for part in range(2):
        ids = torch.randint(32000, (4, 1024), device="cuda")
        logits = model(ids)
        loss = F.cross_entropy(logits[:, :-1].float().reshape(-1, 32000), ids[:, 1:].reshape(-1)) / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
