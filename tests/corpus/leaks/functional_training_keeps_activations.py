# leak
import torch
ws = [torch.randn(512, 512, device="cuda", requires_grad=True) for _ in range(4)]
acts = []
def net(x):
    for w in ws:
        x = torch.relu(x @ w)
    acts.append(x.detach() * 1)  # <- kept
    return x
for i in range(25):
    x = torch.randn(256, 512, device="cuda")
    loss = net(x).pow(2).mean()
    grads = torch.autograd.grad(loss, ws)
    with torch.no_grad():
        for w, g in zip(ws, grads):
            w -= 0.01 * g
