# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
preds = torch.empty(0, 512, device="cuda")
for i in range(60):
    x = torch.randn(128, 512, device="cuda")
    out = net(x)
    loss = (out - x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    preds = torch.cat([preds, out.detach()])  # <- kept
