# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
penalty = 0
for step in range(30):
    x = torch.randn(512, 512, device="cuda")
    loss = model(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    penalty = penalty + model(x).abs().mean().detach()
