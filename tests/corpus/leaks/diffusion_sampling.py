# clean
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(32, 3, 3, padding=1)).cuda().eval()
x = torch.randn(8, 3, 64, 64, device="cuda")
with torch.no_grad():
    for t in range(50):
        x = x - 0.02 * model(x) + 0.01 * torch.randn_like(x)
