# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
log = []
for i in range(60):
    out = model(torch.randn(256, 512, device="cuda"))
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if i % 3 == 0:
        log.append({"out": out.detach().clone()})  # <- kept
