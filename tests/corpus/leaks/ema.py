# clean
import copy, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
ema = copy.deepcopy(model)
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(20):
    loss = model(torch.randn(128, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), model.parameters()):
            a.mul_(0.99).add_(b, alpha=0.01)
