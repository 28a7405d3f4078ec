# leak
import functools, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
@functools.lru_cache(maxsize=None)
def answer(x):
    with torch.no_grad():
        return model(x)  # <- kept
for i in range(40):
    q = torch.randn(128, 512, device="cuda")  # <- kept
    answer(q)
