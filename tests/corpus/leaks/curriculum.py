# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(24):
    loss = model(torch.randn(64 * (i + 1), 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
