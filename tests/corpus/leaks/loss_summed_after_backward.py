# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.Adam(model.parameters())
total = 0
for i in range(25):
    loss = model(torch.randn(128, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    total += loss.detach()
