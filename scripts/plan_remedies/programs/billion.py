# gpu: 24GiB
"""A Llama of 1.1 billion parameters, trained in bfloat16 with AdamW."""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32, num_key_value_heads=4)
model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
batch_size, seq_len = 8, 2048
model.train()
for step in range(10):
    input_ids = torch.randint(0, 32000, (batch_size, seq_len), device="cuda")
    out = model(input_ids=input_ids, labels=input_ids)
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
