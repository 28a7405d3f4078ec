# leak
import torch
weight = torch.randn(512, 512, device="cuda")
callbacks = []
for job in range(70):
    x = torch.randn(512, 512, device="cuda")
    y = x @ weight  # <- kept
    callbacks.append(lambda y=y: y)
    y = None if job < 0 else y
    z = (x * 2).sum()
