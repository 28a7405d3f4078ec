import torch
from registry import remember
def process(net, opt, x):
    out = net(x)
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    remember("error", (out - x).abs().detach())  # <- kept
