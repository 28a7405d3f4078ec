# clean
import torch
net = torch.nn.Sequential(*[m for _ in range(16) for m in (torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU())]).cuda().eval()
features = {}
handles = [m.register_forward_hook(lambda mod, inp, out, n=n: features.__setitem__(n, out)) for n, m in net.named_modules() if n]
with torch.no_grad():
    net(torch.randn(4, 16, 64, 64, device="cuda"))
for h in handles: h.remove()
