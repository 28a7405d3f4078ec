import peft
import torch
import transformers
from truth import DEVICE, phase, tell

config = transformers.LlamaConfig(
    hidden_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=4,
    intermediate_size=688,
    vocab_size=8000,
)
model = peft.get_peft_model(
    transformers.LlamaForCausalLM(config),
    peft.LoraConfig(r=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
).to(DEVICE)
model.print_trainable_parameters()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for _ in range(3):
    ids = torch.randint(0, 8000, (4, 128), device=DEVICE)
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
