# leak
import torch
weight = torch.randn(512, 512, device="cuda")
errors = []
def attempt(job):
    x = torch.randn(512, 512, device="cuda")
    y = torch.relu(x @ weight)  # <- kept
    del x
    raise ValueError(job)
for job in range(80):
    noise = torch.randn(64, 64, device="cuda")
    try:
        attempt(job)
    except ValueError as error:
        errors.append(error)
