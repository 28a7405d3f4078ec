# clean
import torch
n = 20000
d = torch.rand(n, device="cuda")
def matvec(v):
    return d * v + v.roll(1) + v.roll(-1)
q = torch.randn(n, device="cuda"); q /= q.norm()
basis, alphas = [q], []
for k in range(60):
    w = matvec(basis[-1])
    alphas.append((w @ basis[-1]).item())
    for b in basis:
        w = w - (w @ b) * b
    basis.append(w / w.norm())
