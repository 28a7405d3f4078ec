# leak
import torch
from layers import Block
net = torch.nn.Sequential(*[Block(128) for _ in range(4)]).cuda().eval()
with torch.inference_mode():
    for request in range(40):
        x = torch.randn(8, 64, 128, device="cuda")
        y = net(x)  # <- kept
        print(y.mean().item())
