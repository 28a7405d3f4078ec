"""PyTorch finds no memory: a library in the same process, which PyTorch knows nothing of, holds most of the device."""
import torch

import outside_library

torch.zeros(1, device="cuda")
free, total = torch.cuda.mem_get_info()
buffers = outside_library.take(int(free * 0.75))
weights = torch.empty(int(free * 0.1), dtype=torch.uint8, device="cuda")
activations = torch.empty(int(free * 0.3), dtype=torch.uint8, device="cuda")
print("fits", activations.numel())
