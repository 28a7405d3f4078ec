# clean
import functools, torch
@functools.lru_cache(maxsize=8)
def mask(n):
    return torch.full((n, n), float("-inf"), device="cuda").triu(1)
w = torch.randn(256, 256, device="cuda")
for i in range(60):
    n = 256 + 16 * (i % 30)
    x = torch.randn(n, 256, device="cuda")
    y = torch.softmax(x @ w @ x.T + mask(n), -1) @ x
