# clean
import torch
class Cell(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.i, self.h = torch.nn.Linear(256, 256), torch.nn.Linear(256, 256)
    def forward(self, x, h):
        return torch.tanh(self.i(x) + self.h(h))
cell = Cell().cuda()
xs, h = torch.randn(64, 256, 256, device="cuda"), torch.zeros(256, 256, device="cuda")
for t in range(64):
    h = cell(xs[t], h)
