# leak
import torch
weight = torch.randn(1024, 1024, device="cuda")
features = []
for _ in range(100):
    x = torch.randn(512, 1024, device="cuda")
    hidden = x @ weight
    scaled = hidden * 0.5
    features.append(scaled.relu())  # <- kept
    del x, hidden, scaled
