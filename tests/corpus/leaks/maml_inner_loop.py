# clean
import torch
w = torch.randn(512, 512, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
for outer in range(9):
    fast = w
    for inner in range(5):
        x = torch.randn(128, 512, device="cuda")
        loss = (x @ fast).pow(2).mean()
        g, = torch.autograd.grad(loss, fast, create_graph=True)
        fast = fast - 0.1 * g
    opt.zero_grad(); (torch.randn(128, 512, device="cuda") @ fast).pow(2).mean().backward(); opt.step()
