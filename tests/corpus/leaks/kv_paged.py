# clean
import torch
class Paged:
    def __init__(self, size):
        self.size, self.blocks, self.used = size, [], size
    def append(self, kv):
        if self.used == self.size:
            self.blocks.append(torch.empty(self.size, *kv.shape, device="cuda"))
            self.used = 0
        self.blocks[-1][self.used] = kv
        self.used += 1
    def read(self):
        return torch.cat([*self.blocks[:-1], self.blocks[-1][:self.used]])
class Layer(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.kv, self.q, self.cache = torch.nn.Linear(d, d), torch.nn.Linear(d, d), Paged(8)
    def forward(self, x):
        self.cache.append(self.kv(x))
        memory = self.cache.read()
        return x + torch.softmax((self.q(x) * memory).sum(-1), 0).unsqueeze(-1).mul(memory).sum(0)
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = torch.nn.Embedding(100, 256), torch.nn.ModuleList([Layer(256) for _ in range(4)])
    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return x[:, :100]
model = Model().cuda()
ids = torch.zeros(64, dtype=torch.long, device="cuda")
with torch.no_grad():
    for t in range(160):
        ids = model(ids).argmax(-1)
