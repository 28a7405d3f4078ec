"""A bidirectional GRU on packed sequences of different lengths."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

embedding = nn.Embedding(20000, 300).cuda()
gru = nn.GRU(300, 512, 2, batch_first=True, bidirectional=True, dropout=0.3).cuda()
head = nn.Linear(1024, 20).cuda()
optimizer = torch.optim.AdamW([*embedding.parameters(), *gru.parameters(), *head.parameters()])
for step in range(4):
    lengths = torch.arange(118 - 7 * step, 118 - 7 * step - 64, -1)
    ids = torch.randint(20000, (64, int(lengths[0])), device="cuda")
    packed = pack_padded_sequence(embedding(ids), lengths, batch_first=True)
    states, _ = pad_packed_sequence(gru(packed)[0], batch_first=True)
    tags = torch.randint(20, (64, states.shape[1]), device="cuda")
    loss = nn.functional.cross_entropy(head(states).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
