# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
later = []
for i in range(25):
    x = torch.randn(512, 512, device="cuda")  # <- kept
    loss = model(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    later.append(lambda x=x: x.mean())
