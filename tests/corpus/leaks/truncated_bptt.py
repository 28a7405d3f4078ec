# clean
import torch
cell, head = torch.nn.GRUCell(128, 256).cuda(), torch.nn.Linear(256, 10).cuda()
opt = torch.optim.Adam([*cell.parameters(), *head.parameters()])
h = torch.zeros(128, 256, device="cuda")
for chunk in range(10):
    h, loss = h.detach(), 0
    for t in range(8):
        h = cell(torch.randn(128, 128, device="cuda"), h)
        loss = loss + head(h).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
