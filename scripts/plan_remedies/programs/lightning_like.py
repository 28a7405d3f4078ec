# gpu: 2GiB
"""A Trainer of the user's own, in Lightning's manner, with hooks and a validation that forgets no_grad."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 100))

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Trainer:
    def __init__(self, epochs):
        self.epochs, self.history = epochs, []

    def fit(self, module, train, val):
        module.cuda()
        optimizer = module.configure_optimizers()
        for epoch in range(self.epochs):
            module.train()
            for batch in train:
                loss = module.training_step([part.cuda() for part in batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            self.validate(module, val)

    def validate(self, module, val):
        module.eval()
        losses = [module.validation_step([part.cuda() for part in batch]) for batch in val]
        self.history.append(torch.stack(losses).mean())


data = TensorDataset(torch.randn(40000, 256), torch.randint(0, 100, (40000,)))
Trainer(3).fit(Classifier(), DataLoader(data, batch_size=512, shuffle=True), DataLoader(data, batch_size=2048))
