# clean
import torch
weight = torch.randn(512, 512, device="cuda")
history = []
for step in range(60):
    x = torch.randn(512, 512, device="cuda")
    y = torch.sigmoid(x @ weight)
    if step % 3 == 0:
        history = [y]
