# leak
import torch
class Mean:
    def __init__(self):
        self.values = []
    def update(self, value):
        self.values.append(value)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
metric = Mean()
for step in range(30):
    x = torch.randn(512, 512, device="cuda")
    out = model(x)
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    metric.update((out.detach() - model(x)).abs())  # <- kept
