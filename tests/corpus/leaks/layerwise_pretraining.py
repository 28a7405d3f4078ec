# clean
import torch
x, layers = torch.randn(512, 256, device="cuda"), []
for depth in range(4):
    layer = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()).cuda()
    opt = torch.optim.Adam(layer.parameters())
    for i in range(10):
        loss = (layer(x) - x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    layers.append(layer)
    x = layer(x).detach()
