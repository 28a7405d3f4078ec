# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
saved = []
for epoch in range(10):
    for i in range(3):
        loss = model(torch.randn(128, 256, device="cuda")).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    saved.append({k: v.clone() for k, v in model.state_dict().items()})  # <- kept
