# leak
import torch
cell = torch.nn.GRUCell(128, 256).cuda()
h = torch.zeros(256, 256, device="cuda")
for i in range(25):
    x = torch.randn(256, 128, device="cuda")
    h = cell(x, h)  # <- kept
    loss = h.pow(2).mean()
    loss.backward(retain_graph=True)
