"""A word-level LSTM language model with truncated back-propagation through time: hidden states carried over and detached, weights tied, plain SGD by hand."""
import math

import torch
import torch.nn as nn


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.5, tie_weights=True):
        super().__init__()
        self.ntoken, self.nhid, self.nlayers = ntoken, nhid, nlayers
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return torch.nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


device = torch.device("cuda")
ntokens, batch_size, bptt, lr, clip = 33278, 64, 70, 20.0, 0.25
corpus = torch.randint(0, ntokens, (batch_size, 70 * 3 + 31)).t().contiguous().to(device)
model = RNNModel(ntokens, 1500, 1500, 2).to(device)
criterion = nn.NLLLoss()
hidden = model.init_hidden(batch_size)
for batch, i in enumerate(range(0, corpus.size(0) - 1, bptt)):
    data, targets = get_batch(corpus, i, bptt)
    model.zero_grad()
    hidden = repackage_hidden(hidden)
    output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-lr)
    cur_loss = loss.item()
    print(f"batch {batch} | length {len(data)} | loss {cur_loss:5.2f} | ppl {math.exp(min(cur_loss, 50)):8.2f}")
