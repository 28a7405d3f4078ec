"""Training with small batches and evaluation with far larger ones between the epochs; the outputs of the evaluation are collected and joined at its end."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class RandomDocuments(Dataset):
    def __init__(self, n, length, vocab=20000, classes=50):
        generator = torch.Generator().manual_seed(n)
        self.x = torch.randint(1, vocab, (n, length), generator=generator)
        self.y = torch.randint(0, classes, (n,), generator=generator)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class TextCNN(nn.Module):
    def __init__(self, vocab=20000, dim=512, filters=512, sizes=(3, 4, 5), classes=50):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(dim, filters, size) for size in sizes])
        self.dropout = nn.Dropout(0.5)
        self.fc = nn.Linear(filters * len(sizes), classes)

    def forward(self, x):
        x = self.embedding(x).permute(0, 2, 1)
        pooled = [F.max_pool1d(F.relu(conv(x)), conv(x).shape[2]).squeeze(2) for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, dim=1)))


def train_epoch(model, loader, optimizer, criterion, device):
    model.train()
    total = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def evaluate(model, loader, criterion, device):
    model.eval()
    outputs, labels = [], []
    with torch.no_grad():
        for x, y in loader:
            outputs.append(model(x.to(device)))
            labels.append(y.to(device))
    outputs, labels = torch.cat(outputs), torch.cat(labels)
    accuracy = (outputs.softmax(-1).argmax(-1) == labels).float().mean()
    return criterion(outputs, labels).item(), accuracy.item()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train_loader = DataLoader(RandomDocuments(512, 400), batch_size=128, shuffle=True, drop_last=True)
valid_loader = DataLoader(RandomDocuments(2100, 400), batch_size=1024)
model = TextCNN().to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    train_loss = train_epoch(model, train_loader, optimizer, criterion, device)
    valid_loss, valid_acc = evaluate(model, valid_loader, criterion, device)
    print(f"Epoch {epoch + 1:02} | train {train_loss:.3f} | valid {valid_loss:.3f} | acc {valid_acc * 100:.2f}%")
