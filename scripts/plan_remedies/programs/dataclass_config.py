# gpu: 3GiB
"""The sizes stand in a dataclass, train and eval differ, and epochs alternate."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    train_batch_size: int = 96
    eval_batch_size: int = 32
    hidden: int = 768
    layers: int = 6
    lr: float = 1e-4
    epochs: int = 2


def build(cfg):
    layer = nn.TransformerEncoderLayer(cfg.hidden, 12, 4 * cfg.hidden, batch_first=True)
    return nn.ModuleDict({"encoder": nn.TransformerEncoder(layer, cfg.layers), "head": nn.Linear(cfg.hidden, 2)}).cuda()


def main(cfg=Config()):
    model = build(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    data = TensorDataset(torch.randn(960, 128, cfg.hidden), torch.randint(0, 2, (960,)))
    train = DataLoader(data, batch_size=cfg.train_batch_size, shuffle=True)
    val = DataLoader(data, batch_size=cfg.eval_batch_size)
    for epoch in range(cfg.epochs):
        model.train()
        for x, y in train:
            x, y = x.cuda(), y.cuda()
            loss = nn.functional.cross_entropy(model["head"](model["encoder"](x).mean(1)), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in val:
                correct += (model["head"](model["encoder"](x.cuda()).mean(1)).argmax(1) == y.cuda()).sum().item()


if __name__ == "__main__":
    main()
