# gpu: 3GiB
"""LoRA on a Llama in bfloat16: what fills the GPU are activations, not weights."""
import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(vocab_size=4096, hidden_size=768, intermediate_size=2048, num_hidden_layers=16,
                     num_attention_heads=12, num_key_value_heads=4)
model = LlamaForCausalLM(config).to(torch.bfloat16).to("cuda")
adapted = get_peft_model(model, LoraConfig(r=16, target_modules="all-linear"))
optimizer = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-4)
for step in range(4):
    tokens = torch.randint(0, 4096, (4, 2048), device="cuda")
    loss = adapted(input_ids=tokens, labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
