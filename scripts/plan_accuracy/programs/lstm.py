"""A two-layer LSTM language model with Adam."""
import torch
import torch.nn as nn

vocabulary, width, batch_size, length = 10000, 1024, 64, 128
model = nn.ModuleDict({"embedding": nn.Embedding(vocabulary, width), "lstm": nn.LSTM(width, width, 2, dropout=0.2, batch_first=True), "head": nn.Linear(width, vocabulary)}).cuda()
optimizer = torch.optim.Adam(model.parameters())
state = None
for step in range(3):
    ids = torch.randint(vocabulary, (batch_size, length + 1), device="cuda")
    output, state = model["lstm"](model["embedding"](ids[:, :-1]), state)
    state = tuple(s.detach() for s in state)
    loss = nn.functional.cross_entropy(model["head"](output).reshape(-1, vocabulary), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
