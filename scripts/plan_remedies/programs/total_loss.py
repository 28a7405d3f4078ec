# gpu: 2GiB
"""The old one: a running loss with its graph, over an epoch of known length."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 20000

    def __getitem__(self, index):
        return torch.zeros(3, 64, 64), index % 10


model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(4), nn.Conv2d(32, 64, 3, padding=1),
                      nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
running_loss = 0.0
for step, (x, y) in enumerate(DataLoader(Images(), batch_size=32)):
    out = model(x.cuda())
    loss = nn.functional.cross_entropy(out, y.cuda())
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    running_loss += loss
print(running_loss.item() / (step + 1))
