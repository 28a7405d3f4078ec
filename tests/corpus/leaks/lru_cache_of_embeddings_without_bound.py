# leak
import functools
import torch
table = torch.randn(50000, 256, device="cuda")
@functools.lru_cache(maxsize=None)
def rows(key):
    index = torch.arange(key, key + 1024, device="cuda")
    return table[index] * 2  # <- kept
for query in range(50):
    for probe in range(4):
        score = rows(query * 4 + probe) @ table[:256].T
