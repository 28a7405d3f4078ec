# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)).cuda()
table = torch.empty(40 * 128, 128, device="cuda")
with torch.no_grad():
    for i in range(40):
        table[i * 128:(i + 1) * 128] = model(torch.randn(128, 256, device="cuda"))
