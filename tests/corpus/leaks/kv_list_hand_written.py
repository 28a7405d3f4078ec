# clean
import torch
weight = torch.randn(1024, 1024, device="cuda")
token = torch.randn(64, 1024, device="cuda")
keys = []
with torch.no_grad():
    for _ in range(100):
        projected = token @ weight
        keys.append(projected * 1.5)
        scores = torch.cat(keys) @ token[0]
        token = projected + scores.mean()
        del projected, scores
