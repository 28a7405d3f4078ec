# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda().eval()
total = 0.0
with torch.inference_mode():
    for i in range(40):
        total += model(torch.randn(256, 512, device="cuda")).mean().item()
