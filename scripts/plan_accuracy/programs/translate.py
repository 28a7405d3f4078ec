"""nn.Transformer, encoder and decoder, with masks; Adam with a schedule."""
import torch
import torch.nn as nn

vocabulary, width = 16000, 512
source_embedding, target_embedding = nn.Embedding(vocabulary, width).cuda(), nn.Embedding(vocabulary, width).cuda()
model = nn.Transformer(width, 8, 6, 6, 2048, 0.1, batch_first=True).cuda()
head = nn.Linear(width, vocabulary).cuda()
parameters = [p for m in (source_embedding, target_embedding, model, head) for p in m.parameters()]
optimizer = torch.optim.Adam(parameters, 1e-4)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
for step in range(3):
    source = torch.randint(1, vocabulary, (32, 120), device="cuda")
    target = torch.randint(1, vocabulary, (32, 100), device="cuda")
    source[:, 90:] = 0
    mask = nn.Transformer.generate_square_subsequent_mask(99, device="cuda")
    out = model(source_embedding(source), target_embedding(target[:, :-1]), tgt_mask=mask, src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0, tgt_is_causal=True)
    loss = nn.functional.cross_entropy(head(out).flatten(0, 1), target[:, 1:].flatten(), label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    schedule.step()
