# clean
import torch
w = torch.randn(512, 512, device="cuda", requires_grad=True)
def down(x, depth):
    h = torch.relu(x @ w)
    if depth == 0:
        return h
    return h + down(h * 0.5, depth - 1)
y = down(torch.randn(256, 512, device="cuda"), 40)
