# clean
import torch
class Trainer:
    def __init__(self):
        self.model = torch.nn.LSTM(64, 128, 2).cuda()
        self.opt = torch.optim.RMSprop(self.model.parameters())
    def step(self, x):
        out, _ = self.model(x)
        loss = out.pow(2).mean()
        self.opt.zero_grad(); loss.backward(); self.opt.step()
        self.last = out
    def fit(self):
        for _ in range(20): self.step(torch.randn(32, 64, 64, device="cuda"))
Trainer().fit()
