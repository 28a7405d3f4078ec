# clean
import torch
tables = {}
def embed(name):
    if name not in tables:
        tables[name] = torch.nn.Parameter(torch.randn(512, 512, device="cuda"))
    return tables[name]
for i in range(60):
    x = torch.randn(256, 512, device="cuda")
    y = (x @ embed(i % 12)).sum()
    y.backward()
