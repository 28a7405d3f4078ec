# leak
import torch
target = torch.randn(2048, 256, device="cuda")
best = {}
for fold in range(10):
    weight = torch.randn(256, 256, device="cuda")
    for trial in range(8):
        guess = target @ weight + trial
        error = (guess - target).abs().mean()
    best[fold] = guess.relu()  # <- kept
