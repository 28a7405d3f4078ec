# leak
import torch
held = []
for i in range(100):
    held.append(torch.empty(1000, 1000, device="cuda"))  # <- kept
