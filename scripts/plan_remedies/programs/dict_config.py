# gpu: 2GiB
"""The sizes stand in a dictionary at the top of the file."""
import torch
from torch import nn
from torch.utils.data import DataLoader

CONFIG = {"batch_size": 256, "seq_len": 256, "dim": 384, "depth": 6, "lr": 3e-4, "epochs": 1}


class Tagger(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(5000, dim)
        self.rnn = nn.GRU(dim, dim, num_layers=depth, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, 50)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


sentences = [torch.randint(0, 5000, (CONFIG["seq_len"],)) for _ in range(4096)]
loader = DataLoader(sentences, batch_size=CONFIG["batch_size"], shuffle=True)
model = Tagger(CONFIG["dim"], CONFIG["depth"]).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
for epoch in range(CONFIG["epochs"]):
    for tokens in loader:
        tokens = tokens.cuda()
        loss = nn.functional.cross_entropy(model(tokens).transpose(1, 2), tokens % 50)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
