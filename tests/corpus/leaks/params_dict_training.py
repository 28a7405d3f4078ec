# clean
import torch
def init(key, sizes):
    g = torch.Generator(device="cpu").manual_seed(key)
    return {f"dense_{i}": {"w": (torch.randn(a, b, generator=g) / a ** 0.5).to("cuda").requires_grad_(), "b": torch.zeros(b, device="cuda", requires_grad=True)} for i, (a, b) in enumerate(zip(sizes, sizes[1:]))}
def tree_map(f, *trees):
    return {k: tree_map(f, *[t[k] for t in trees]) if isinstance(v, dict) else f(*[t[k] for t in trees]) for k, v in trees[0].items()}
def leaves(tree):
    return [x for v in tree.values() for x in (leaves(v) if isinstance(v, dict) else [v])]
def apply(params, x):
    for name in params:
        x = torch.tanh(x @ params[name]["w"] + params[name]["b"])
    return x
def update(params, x, y):
    loss = (apply(params, x) - y).pow(2).mean()
    grads = iter(torch.autograd.grad(loss, leaves(params)))
    return tree_map(lambda p: (p - 0.1 * next(grads)).detach().requires_grad_(), params), loss.item()
params = init(0, [512] * 13)
for step in range(30):
    x = torch.randn(256, 512, device="cuda")
    params, loss = update(params, x, x)
