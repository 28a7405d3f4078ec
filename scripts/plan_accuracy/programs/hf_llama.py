"""Hugging Face's Llama, small, in bfloat16 with its own gradient checkpointing, SGD."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=2048)
model = LlamaForCausalLM(config).to(torch.bfloat16).to("cuda")
model.gradient_checkpointing_enable()
model.train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    ids = torch.randint(32000, (4, 1024), device="cuda")
    loss = model(input_ids=ids, labels=ids, use_cache=False).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
