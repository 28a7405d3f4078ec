# clean
import torch
w1, w2 = torch.randn(512, 512, device="cuda", requires_grad=True), torch.randn(512, 1, device="cuda", requires_grad=True)
for i in range(30):
    x = torch.randn(256, 512, device="cuda")
    loss = (torch.relu(x @ w1) @ w2).pow(2).mean()
    g1, g2 = torch.autograd.grad(loss, [w1, w2])
    with torch.no_grad():
        w1 -= 0.1 * g1
        w2 -= 0.1 * g2
