# gpu: 3GiB
"""Trains in epochs; the validation keeps all logits, with their graphs, for a metric."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.randn(64, 128), index % 10


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.LSTM(128, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        out, _ = self.encoder(x)
        return self.head(out[:, -1])


def evaluate(model, loader):
    model.eval()
    outputs, targets = [], []
    for x, y in loader:
        outputs.append(model(x.cuda()))
        targets.append(y.cuda())
    return (torch.cat(outputs).argmax(-1) == torch.cat(targets)).float().mean()


model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train, val = DataLoader(Samples(12800), batch_size=64, shuffle=True), DataLoader(Samples(25600), batch_size=128)
for epoch in range(4):
    model.train()
    for x, y in train:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(model, val).item())
