# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1024)).cuda()
errors = []
def work(i):
    x = torch.randn(512, 512, device="cuda")  # <- kept
    with torch.no_grad():
        y = model(x)  # <- kept
    raise ValueError(i)
for i in range(30):
    try:
        work(i)
    except ValueError as error:
        errors.append(error)
