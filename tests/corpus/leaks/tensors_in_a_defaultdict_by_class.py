# leak
import collections, torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
by_class = collections.defaultdict(list)
for i in range(30):
    x = torch.randn(256, 256, device="cuda")
    f = model(x)
    loss = f.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    by_class[i % 5].append(f[:200] * 1)  # <- kept
