# clean
import torch
model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(12)]).cuda()
for micro in range(16):
    model(torch.randn(256, 512, device="cuda")).pow(2).mean().backward()
