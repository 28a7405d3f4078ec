# clean
import torch
x = torch.randn(512, 512, device="cuda", requires_grad=True)
opt = torch.optim.LBFGS([x], max_iter=4, history_size=5)
def closure():
    opt.zero_grad()
    loss = (x @ x.T).pow(2).mean()
    loss.backward()
    return loss
for i in range(10):
    opt.step(closure)
