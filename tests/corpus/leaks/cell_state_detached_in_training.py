# clean
import torch
cell = torch.nn.GRUCell(256, 512).cuda()
head = torch.nn.Linear(512, 256).cuda()
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
hidden = torch.zeros(256, 512, device="cuda")
log = []
for step in range(40):
    hidden = cell(torch.randn(256, 256, device="cuda"), hidden.detach())
    loss = head(hidden.detach()).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
