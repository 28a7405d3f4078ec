# clean
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.time = torch.nn.Linear(1, 32)
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(32, 3, 3, padding=1))
    def forward(self, x, t):
        return self.body(x) * self.time(t).mean(-1)[:, None, None, None]
net = Net().cuda().eval()
x = torch.randn(8, 3, 64, 64, device="cuda")
frames = [x]
with torch.no_grad():
    for i in reversed(range(50)):
        t = torch.full((8, 1), i / 50, device="cuda")
        x = x - 0.02 * net(x, t)
        frames.append(x)
film = torch.stack(frames)
