# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
static_in, static_out = torch.zeros(256, 512, device="cuda"), torch.zeros(256, 512, device="cuda")
with torch.no_grad():
    for _ in range(3):
        static_out.copy_(model(static_in))
    results = []
    for i in range(50):
        static_in.copy_(torch.randn(256, 512))
        static_out.copy_(model(static_in))
        results.append(static_out.float().mean().item())
