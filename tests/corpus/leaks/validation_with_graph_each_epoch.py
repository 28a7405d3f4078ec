# leak
import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)).cuda()
opt = torch.optim.SGD(net.parameters(), 0.1)
val = torch.randn(128, 512, device="cuda")
history = []
def validate():
    return (net(val) - val).pow(2).mean()  # <- kept
for epoch in range(14):
    for i in range(4):
        x = torch.randn(128, 512, device="cuda")
        loss = (net(x) - x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    history.append(validate())
