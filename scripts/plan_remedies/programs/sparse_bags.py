# gpu: 6GiB
"""A recommender: EmbeddingBag with sparse gradients, SparseAdam for it and Adam for the rest."""
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items=4_000_000, width=128):
        super().__init__()
        self.bag = nn.EmbeddingBag(items, width, sparse=True, mode="mean")
        self.top = nn.Sequential(nn.Linear(width, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, ids, offsets):
        return self.top(self.bag(ids, offsets)).squeeze(1)


model = Recommender().to("cuda")
sparse = torch.optim.SparseAdam(list(model.bag.parameters()), lr=1e-3)
dense = torch.optim.Adam(model.top.parameters(), lr=1e-3)
batch_size = 65536
for step in range(6):
    ids = torch.randint(0, 4_000_000, (batch_size * 20,), device="cuda")
    offsets = torch.arange(0, batch_size * 20, 20, device="cuda")
    loss = nn.functional.binary_cross_entropy_with_logits(model(ids, offsets), torch.ones(batch_size, device="cuda"))
    sparse.zero_grad()
    dense.zero_grad()
    loss.backward()
    sparse.step()
    dense.step()
