import tempfile

import torch
import transformers
from truth import DEVICE, phase, tell

config = transformers.BertConfig(
    hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024, vocab_size=8000
)
with tempfile.TemporaryDirectory() as folder:
    transformers.BertModel(config).save_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
model.train()
for _ in range(3):
    ids = torch.randint(0, 8000, (4, 128), device=DEVICE)
    loss = model(input_ids=ids).last_hidden_state.square().mean() + model(input_ids=ids).pooler_output.mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
