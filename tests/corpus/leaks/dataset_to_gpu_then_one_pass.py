# clean
import torch
data = [torch.randn(128, 1024).cuda() for _ in range(64)]
model = torch.nn.Sequential(torch.nn.Linear(1024, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).cuda()
with torch.no_grad():
    model(data[0])
