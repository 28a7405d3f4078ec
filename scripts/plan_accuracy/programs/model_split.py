"""A model split by hand over two GPUs, which shares one when there is only one; micro-batches follow each other through the halves."""
import torch
import torch.nn as nn

n_gpus = torch.cuda.device_count()
dev0 = torch.device("cuda:0")
dev1 = torch.device("cuda:1" if n_gpus > 1 else "cuda:0")
print(f"{n_gpus} GPU(s): {dev0}, {dev1}")


class ResidualMLP(nn.Module):
    def __init__(self, width, expansion=4):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width * expansion)
        self.act = nn.SiLU()
        self.down = nn.Linear(width * expansion, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class SplitNet(nn.Module):
    def __init__(self, features=1024, width=2048, depth=12, classes=5000, split_size=1024):
        super().__init__()
        self.split_size = split_size
        self.stage0 = nn.Sequential(nn.Linear(features, width), *[ResidualMLP(width) for _ in range(depth // 2)]).to(dev0)
        self.stage1 = nn.Sequential(*[ResidualMLP(width) for _ in range(depth - depth // 2)], nn.Linear(width, classes)).to(dev1)

    def forward(self, x):
        splits = iter(x.split(self.split_size, dim=0))
        previous = self.stage0(next(splits)).to(dev1)
        outputs = []
        for piece in splits:
            outputs.append(self.stage1(previous))
            previous = self.stage0(piece).to(dev1)
        outputs.append(self.stage1(previous))
        return torch.cat(outputs)


model = SplitNet()
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for step in range(3):
    inputs = torch.randn(4096, 1024)
    labels = torch.randint(0, 5000, (4096,))
    optimizer.zero_grad()
    outputs = model(inputs.to(dev0))
    loss = loss_fn(outputs, labels.to(outputs.device))
    loss.backward()
    optimizer.step()
    print("step", step, "loss", round(loss.item(), 4))
