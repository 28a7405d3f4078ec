# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
def predictions():
    for i in range(40):
        x = torch.randn(512, 256, device="cuda")
        yield model(x).detach()  # <- kept
results = list(predictions())
