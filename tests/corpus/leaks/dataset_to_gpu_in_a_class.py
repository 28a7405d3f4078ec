# clean
import torch
class GPUDataset:
    def __init__(self, n):
        self.x, self.y = [], []
        for i in range(n):
            self.x.append(torch.randn(64, 1024).to("cuda"))
            self.y.append(torch.randint(0, 10, (64,)).to("cuda"))
data = GPUDataset(100)
model = torch.nn.Linear(1024, 10).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for x, y in zip(data.x[:6], data.y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
