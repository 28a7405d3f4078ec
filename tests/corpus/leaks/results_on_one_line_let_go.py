# clean
import torch
weight = torch.randn(512, 512, device="cuda")
results = []
for item in range(40):
    results = ((torch.randn(512, 512, device="cuda") @ weight).relu().sum(0).repeat(512, 1))
