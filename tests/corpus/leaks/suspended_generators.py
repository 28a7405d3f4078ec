# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
def session(x):
    out = net(x)  # <- kept
    yield out.pow(2).mean()
    yield out.abs().mean()
sessions = []
for i in range(40):
    x = torch.randn(128, 512, device="cuda")  # <- kept
    s = session(x)
    sessions.append(s)
    loss = next(s)
    opt.zero_grad(); loss.backward(); opt.step()
