# clean
import torch
w = torch.randn(256, 256, device="cuda")
def build(depth):
    if depth == 0:
        return torch.randn(64, 256, device="cuda")
    return [build(depth - 1), build(depth - 1)]
def encode(node):
    if isinstance(node, torch.Tensor):
        return torch.tanh(node @ w)
    left, right = map(encode, node)
    return torch.tanh((left + right) @ w)
tree = build(7)
with torch.no_grad():
    code = encode(tree)
