"""WaveNet on raw audio: dilated causal Conv1d with weight norm, gated units, residual and skip paths, mu-law classes, a spectrogram as a condition."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm


class CausalConv1d(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, dilation=1):
        super().__init__()
        self.left = (kernel_size - 1) * dilation
        self.conv = weight_norm(nn.Conv1d(in_channels, out_channels, kernel_size, dilation=dilation))

    def forward(self, x):
        return self.conv(F.pad(x, (self.left, 0)))


class GatedResidual(nn.Module):
    def __init__(self, residual, gate, skip, condition, dilation):
        super().__init__()
        self.dilated = CausalConv1d(residual, 2 * gate, 2, dilation)
        self.condition = nn.Conv1d(condition, 2 * gate, 1, bias=False)
        self.to_residual, self.to_skip = nn.Conv1d(gate, residual, 1), nn.Conv1d(gate, skip, 1)

    def forward(self, x, c):
        a, b = (self.dilated(x) + self.condition(c)).chunk(2, dim=1)
        z = torch.tanh(a) * torch.sigmoid(b)
        return (x + self.to_residual(z)) * 0.5 ** 0.5, self.to_skip(z)


class WaveNet(nn.Module):
    def __init__(self, classes=256, residual=128, gate=128, skip=256, mels=80, stacks=2, layers=10, hop=256):
        super().__init__()
        self.hop = hop
        self.first = nn.Conv1d(classes, residual, 1)
        self.upsample = nn.Sequential(nn.ConvTranspose1d(mels, mels, 32, stride=16, padding=8), nn.LeakyReLU(0.4),
                                      nn.ConvTranspose1d(mels, mels, 32, stride=16, padding=8), nn.LeakyReLU(0.4))
        self.layers = nn.ModuleList(GatedResidual(residual, gate, skip, mels, 2 ** i) for _ in range(stacks) for i in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(skip, skip, 1), nn.ReLU(), nn.Conv1d(skip, classes, 1))

    def forward(self, codes, mel):
        x = self.first(F.one_hot(codes, 256).transpose(1, 2).float())
        c, skips = self.upsample(mel)[..., :x.size(-1)], 0
        for layer in self.layers:
            x, s = layer(x, c)
            skips = skips + s
        return self.last(skips)


def mu_law(wave, mu=255):
    squashed = torch.sign(wave) * torch.log1p(mu * wave.abs()) / torch.log1p(torch.tensor(float(mu), device=wave.device))
    return ((squashed + 1) / 2 * mu + 0.5).long()


model = WaveNet().cuda()
optim = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.ExponentialLR(optim, gamma=0.99)
for step in range(3):
    audio = torch.rand(8, 8192, device="cuda") * 2 - 1
    mel = torch.randn(8, 80, 8192 // 256, device="cuda")
    codes = mu_law(audio)
    logits = model(codes[:, :-1], mel)
    loss = F.cross_entropy(logits, codes[:, 1:])
    optim.zero_grad(set_to_none=True)
    loss.backward()
    optim.step()
    sched.step()
    print(f"step {step} nll {loss.item():.3f}")
