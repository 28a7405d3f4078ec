# clean
import torch
weight = torch.randn(256, 256, device="cuda")
samples = []
for chain in range(20):
    x = torch.randn(2048, 256, device="cuda")
    for sweep in range(4):
        for move in range(3):
            proposal = x + 0.1 * torch.randn(2048, 256, device="cuda")
            ratio = (proposal @ weight).sum(-1) - (x @ weight).sum(-1)
            x = torch.where((ratio > 0)[:, None], proposal, x)
    samples = [x]
