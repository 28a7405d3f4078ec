"""Graph neural networks written with plain tensors: messages by index_select, sums by scatter_add_ and index_add, attention over edges with scatter_reduce."""
import torch
import torch.nn as nn
import torch.nn.functional as F

NODES, EDGES, FEATURES, HIDDEN, CLASSES = 200_000, 2_000_000, 128, 128, 47


def scatter_mean(src, index, size):
    out = src.new_zeros(size, src.size(-1)).index_add(0, index, src)
    count = src.new_zeros(size).scatter_add_(0, index, torch.ones_like(index, dtype=src.dtype))
    return out / count.clamp(min=1).unsqueeze(-1)


class SAGEConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin_self, self.lin_neigh = nn.Linear(cin, cout), nn.Linear(cin, cout, bias=False)

    def forward(self, x, edge_index):
        row, col = edge_index
        return self.lin_self(x) + self.lin_neigh(scatter_mean(x.index_select(0, row), col, x.size(0)))


class GATConv(nn.Module):
    def __init__(self, cin, cout, heads=4):
        super().__init__()
        self.heads, self.size = heads, cout // heads
        self.lin = nn.Linear(cin, cout, bias=False)
        self.att_src, self.att_dst = nn.Parameter(torch.randn(heads, self.size) * 0.1), nn.Parameter(torch.randn(heads, self.size) * 0.1)

    def forward(self, x, edge_index):
        row, col = edge_index
        h = self.lin(x).view(-1, self.heads, self.size)
        alpha = (h * self.att_src).sum(-1)[row] + (h * self.att_dst).sum(-1)[col]
        alpha = F.leaky_relu(alpha, 0.2)
        index = col.unsqueeze(-1).expand_as(alpha)
        top = torch.full((x.size(0), self.heads), float("-inf"), device=x.device).scatter_reduce(0, index, alpha.detach(), reduce="amax")
        weight = (alpha - top.gather(0, index)).exp()
        norm = torch.zeros(x.size(0), self.heads, device=x.device).scatter_add(0, index, weight)
        weight = weight / (norm.gather(0, index) + 1e-16)
        out = torch.zeros_like(h).index_add(0, col, h[row] * weight.unsqueeze(-1))
        return out.flatten(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = SAGEConv(FEATURES, HIDDEN), GATConv(HIDDEN, HIDDEN), SAGEConv(HIDDEN, CLASSES)
        self.bn1, self.bn2 = nn.BatchNorm1d(HIDDEN), nn.BatchNorm1d(HIDDEN)

    def forward(self, x, edge_index):
        x = F.dropout(F.relu(self.bn1(self.conv1(x, edge_index))), p=0.5, training=self.training)
        x = F.dropout(F.elu(self.bn2(self.conv2(x, edge_index))), p=0.5, training=self.training)
        return self.conv3(x, edge_index).log_softmax(dim=-1)


torch.manual_seed(12345)
device = torch.device("cuda:0")
x = torch.randn(NODES, FEATURES).to(device)
edge_index = torch.randint(0, NODES, (2, EDGES)).to(device)
y = torch.randint(0, CLASSES, (NODES,)).to(device)
train_idx = torch.randperm(NODES)[:NODES // 10].to(device)
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(1, 4):
    model.train()
    optimizer.zero_grad()
    out = model(x, edge_index)[train_idx]
    loss = F.nll_loss(out, y[train_idx])
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = (model(x, edge_index).argmax(-1) == y).float().mean()
    print(f"Epoch: {epoch:02d}, Loss: {loss.item():.4f}, Acc: {acc.item():.4f}")
