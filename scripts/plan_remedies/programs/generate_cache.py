# gpu: 2GiB
"""Generation with a cache in float32."""
import torch
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config(n_layer=12, n_embd=768, n_head=12)).cuda().eval()
batch_size, prompt_len, max_new_tokens = 48, 512, 24
tokens = torch.randint(0, 50257, (batch_size, prompt_len), device="cuda")
with torch.no_grad():
    out = model.generate(tokens, max_new_tokens=max_new_tokens, do_sample=False, pad_token_id=0)
