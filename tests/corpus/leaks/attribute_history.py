# leak
import torch
class Trainer:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
        self.opt = torch.optim.Adam(self.model.parameters())
        self.history = {"out": []}
    def step(self, x):
        out = self.model(x)  # <- kept
        loss = out.pow(2).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.history["out"].append(out.detach())
trainer = Trainer()
for _ in range(25): trainer.step(torch.randn(256, 256, device="cuda"))
