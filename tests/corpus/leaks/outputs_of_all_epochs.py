# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
outputs = []
for epoch in range(4):
    for step in range(12):
        out = model(torch.randn(512, 512, device="cuda"))  # <- kept
        loss = out.pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        outputs.append(out.detach())
