"""Differentially private training: per-sample gradients with torch.func (vmap over grad of functional_call), clipped one by one, noise added."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad_and_value, vmap

MAX_NORM, NOISE, LR = 1.0, 1.1, 0.05


class SimpleCNN(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1, self.gn1 = nn.Conv2d(3, 64, 3, padding=1), nn.GroupNorm(16, 64)
        self.conv2, self.gn2 = nn.Conv2d(64, 128, 3, padding=1), nn.GroupNorm(16, 128)
        self.conv3, self.gn3 = nn.Conv2d(128, 256, 3, padding=1), nn.GroupNorm(16, 256)
        self.fc1, self.fc2 = nn.Linear(256 * 4 * 4, 256), nn.Linear(256, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.gn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.gn2(self.conv2(x))), 2)
        x = F.max_pool2d(F.relu(self.gn3(self.conv3(x))), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


device = "cuda"
torch.manual_seed(0)
model = SimpleCNN().to(device)
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    prediction = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return F.cross_entropy(prediction, target.unsqueeze(0))


per_sample = vmap(grad_and_value(compute_loss), in_dims=(None, None, 0, 0), randomness="different")
for step in range(3):
    batch, targets = torch.randn(256, 3, 32, 32, device=device), torch.randint(0, 10, (256,), device=device)
    grads, losses = per_sample(params, buffers, batch, targets)
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (MAX_NORM / (norms + 1e-6)).clamp(max=1.0)
    for name, g in grads.items():
        summed = torch.einsum("n,n...->...", factor, g)
        noisy = (summed + NOISE * MAX_NORM * torch.randn_like(summed)) / batch.size(0)
        params[name] = params[name] - LR * noisy
    print(f"step {step}: loss {losses.mean().item():.4f}, largest norm {norms.max().item():.3f}")
