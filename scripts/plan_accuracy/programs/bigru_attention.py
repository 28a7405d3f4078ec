"""A bidirectional GRU with attention pooling over long sequences; packed sequences sorted by length in one half, plain ones in the other."""
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class AttentionPool(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(size, size // 2), nn.Tanh(), nn.Linear(size // 2, 1))

    def forward(self, states, mask=None):
        scores = self.score(states).squeeze(-1)
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return torch.bmm(scores.softmax(dim=-1).unsqueeze(1), states).squeeze(1)


class BiGRU(nn.Module):
    def __init__(self, n_features=128, hidden=512, layers=3, n_classes=12):
        super().__init__()
        self.inputs = nn.Linear(n_features, hidden)
        self.gru = nn.GRU(hidden, hidden, num_layers=layers, bidirectional=True, batch_first=True, dropout=0.2)
        self.pool = AttentionPool(2 * hidden)
        self.classifier = nn.Sequential(nn.LayerNorm(2 * hidden), nn.Dropout(0.3), nn.Linear(2 * hidden, n_classes))

    def forward(self, x, lengths=None):
        x = self.inputs(x)
        if lengths is None:
            states, _ = self.gru(x)
            return self.classifier(self.pool(states))
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=x.size(1))
        mask = torch.arange(x.size(1), device=x.device)[None] < lengths.to(x.device)[:, None]
        return self.classifier(self.pool(states, mask))


def main():
    torch.manual_seed(11)
    model = BiGRU().cuda()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    loss_fn = nn.CrossEntropyLoss()
    for step in range(4):
        signal = torch.randn(64, 600, 128, device="cuda")
        target = torch.randint(12, (64,), device="cuda")
        lengths = torch.linspace(600, 200, 64).long() if step % 2 else None
        loss = loss_fn(model(signal, lengths), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        print(f"step {step} {'packed' if step % 2 else 'plain'} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
