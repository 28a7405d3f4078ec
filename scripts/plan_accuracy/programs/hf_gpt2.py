"""Hugging Face's GPT-2: training of two steps, then generation."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config()).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
for step in range(2):
    ids = torch.randint(50257, (4, 512), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    out = model.generate(torch.randint(50257, (2, 32), device="cuda"), max_new_tokens=32, do_sample=False, pad_token_id=0)
print(out.shape)
