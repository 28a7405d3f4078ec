"""A library outside of PyTorch finds no memory: PyTorch holds most of the device in its cache, and nothing in it is in use."""
import torch

import outside_library

model = torch.nn.Linear(1024, 1024).cuda()
free, total = torch.cuda.mem_get_info()


def validate():
    scratch = torch.empty(int(free * 0.7), dtype=torch.uint8, device="cuda")
    return scratch[:10].zero_().sum().item()


print("validated", validate())
buffers = outside_library.take(int(free * 0.5))
print("communicator ready", buffers != 0)
