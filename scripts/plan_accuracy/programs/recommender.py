"""A click-through model heavy in embeddings: EmbeddingBag tables with offsets, dense features, pairwise dot products; Adagrad, then scoring."""
import torch
import torch.nn as nn


class DLRM(nn.Module):
    def __init__(self, tables, dim=64, dense=13, bottom=(512, 256), top=(1024, 1024, 512)):
        super().__init__()
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(n, dim, mode="sum" if i % 2 else "mean", sparse=False) for i, n in enumerate(tables)])
        self.bot_l = self.mlp((dense, *bottom, dim))
        pairs = (len(tables) + 1) * len(tables) // 2
        self.top_l = self.mlp((pairs + dim, *top, 1), last=nn.Identity)
        li, lj = torch.tril_indices(len(tables) + 1, len(tables) + 1, offset=-1)
        self.register_buffer("li", li)
        self.register_buffer("lj", lj)

    @staticmethod
    def mlp(sizes, last=nn.ReLU):
        layers = []
        for i, (n, m) in enumerate(zip(sizes, sizes[1:])):
            layers += [nn.Linear(n, m), (nn.ReLU if i < len(sizes) - 2 else last)()]
        return nn.Sequential(*layers)

    def forward(self, dense, indices, offsets):
        x = self.bot_l(dense)
        ly = [E(idx, off) for E, idx, off in zip(self.emb_l, indices, offsets)]
        T = torch.cat([x] + ly, dim=1).view(x.size(0), -1, x.size(1))
        Z = torch.bmm(T, torch.transpose(T, 1, 2))
        R = torch.cat([x, Z[:, self.li, self.lj]], dim=1)
        return self.top_l(R).squeeze(1)


def make_batch(tables, n, device):
    dense = torch.rand(n, 13, device=device).log1p()
    indices, offsets = [], []
    for i, rows in enumerate(tables):
        per = 1 + i % 5
        indices.append(torch.randint(rows, (n * per,), device=device))
        offsets.append(torch.arange(0, n * per, per, device=device))
    return dense, indices, offsets, torch.randint(0, 2, (n,), device=device).float()


if __name__ == "__main__":
    device = torch.device("cuda:0")
    tables = [2_000_000, 1_000_000, 1_000_000, 500_000, 250_000] + [50_000] * 8 + [1_000] * 13
    with device:
        model = DLRM(tables)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    loss_fn = nn.BCEWithLogitsLoss()
    for j in range(3):
        dense, indices, offsets, click = make_batch(tables, 16384, device)
        loss = loss_fn(model(dense, indices, offsets), click)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"it {j}: loss {loss.item():.5f}")
    model.eval()
    with torch.no_grad():
        dense, indices, offsets, click = make_batch(tables, 131072, device)
        scores = torch.sigmoid(model(dense, indices, offsets))
        print(f"scored {scores.numel()} mean {scores.mean().item():.4f}")
