# clean
import torch
w = torch.randn(512, 256, device="cuda", requires_grad=True)
def node(depth):
    if depth == 0:
        return torch.randn(64, 256, device="cuda")
    left, right = node(depth - 1), node(depth - 1)
    return torch.tanh(torch.cat([left, right], 1) @ w)
root = node(6)
