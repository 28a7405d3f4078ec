import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv
from truth import DEVICE, phase, tell


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = GCNConv(128, 512), GATConv(512, 64, heads=4), GCNConv(256, 16)

    def forward(self, data):
        x = self.one(data.x, data.edge_index).relu()
        x = self.two(x, data.edge_index).relu()
        return self.three(x, data.edge_index)


data = Data(
    x=torch.randn(2000, 128), edge_index=torch.randint(0, 2000, (2, 10000)), y=torch.randint(0, 16, (2000,))
).to(DEVICE)
model = Net().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(5):
    model.train()
    loss = torch.nn.functional.cross_entropy(model(data), data.y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
model.eval()
with torch.no_grad():
    print(model(data).argmax(-1).shape)
phase("evaluation")
tell(model, optimizer, steps=5)
