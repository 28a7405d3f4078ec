"""Hugging Face's BERT as a classifier with attention masks, then an evaluation without gradients."""
import torch
from transformers import BertConfig, BertForSequenceClassification

model = BertForSequenceClassification(BertConfig(num_labels=3)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
for step in range(3):
    ids = torch.randint(30522, (16, 256), device="cuda")
    mask = torch.ones_like(ids)
    mask[:, 200:] = 0
    loss = model(input_ids=ids, attention_mask=mask, labels=torch.randint(3, (16,), device="cuda")).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.eval()
with torch.no_grad():
    for _ in range(2):
        scores = model(input_ids=torch.randint(30522, (64, 128), device="cuda")).logits.softmax(-1).cpu()
