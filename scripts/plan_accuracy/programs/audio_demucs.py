"""A waveform model: convolutions in time with stride 4 and windows of 8, gated 1x1 ones, transposed back, skips; Adam, float32."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Waves(nn.Module):
    def __init__(self, width=64, depth=5):
        super().__init__()
        self.down, self.up, inputs = nn.ModuleList(), nn.ModuleList(), 2
        for level in range(depth):
            self.down.append(nn.Sequential(nn.Conv1d(inputs, width, 8, 4), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.GLU(1)))
            back = [nn.Conv1d(width, 2 * width, 3, padding=1), nn.GLU(1), nn.ConvTranspose1d(width, inputs if level else 8, 8, 4)]
            self.up.insert(0, nn.Sequential(*back, *([nn.ReLU()] if level else [])))
            inputs, width = width, 2 * width
        self.lstm = nn.LSTM(inputs, inputs // 2, 1, bidirectional=True)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
        x = self.lstm(x.permute(2, 0, 1))[0].permute(1, 2, 0)
        for block in self.up:
            skip = kept.pop()
            x = block(x[..., :skip.shape[-1]] + skip[..., :x.shape[-1]])
        return x


model = Waves().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
for step in range(3):
    made = model(torch.randn(8, 2, 176400, device="cuda"))
    loss = F.l1_loss(made, torch.zeros_like(made))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
