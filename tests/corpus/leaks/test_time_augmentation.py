# clean
import torch
net = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3, padding=1)).cuda().eval()
image = torch.randn(1, 3, 128, 128, device="cuda")
outs = []
with torch.no_grad():
    for shift in range(16):
        out = net(image.roll(shift, -1))
        outs.append(out.roll(-shift, -1))
    mean = torch.stack(outs).mean(0)
