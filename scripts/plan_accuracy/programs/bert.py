"""A BERT-like encoder in float32 with a padding mask, masked-language loss, AdamW."""
import torch
import torch.nn as nn

vocabulary, width, length, batch_size = 30522, 768, 256, 16
embedding = nn.Embedding(vocabulary, width).cuda()
layer = nn.TransformerEncoderLayer(width, 12, 3072, dropout=0.1, activation="gelu", batch_first=True)
encoder = nn.TransformerEncoder(layer, 6).cuda()
head = nn.Linear(width, vocabulary).cuda()
parameters = [*embedding.parameters(), *encoder.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=1e-4)
for step in range(3):
    ids = torch.randint(vocabulary, (batch_size, length), device="cuda")
    lengths = torch.randint(length // 2, length, (batch_size,), device="cuda")
    padding = torch.arange(length, device="cuda")[None, :] >= lengths[:, None]
    states = encoder(embedding(ids), src_key_padding_mask=padding)
    loss = nn.functional.cross_entropy(head(states).transpose(1, 2), ids.masked_fill(padding, -100))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
