# clean
import torch
blocks = torch.nn.ModuleList([torch.nn.Linear(256, 256).cuda()])
opt = torch.optim.Adam(blocks.parameters())
for stage in range(5):
    if stage:
        block = torch.nn.Linear(256, 256).cuda()
        blocks.append(block)
        opt.add_param_group({"params": block.parameters()})
    for step in range(8):
        x = torch.randn(256, 256, device="cuda")
        h = x
        for b in blocks:
            h = torch.relu(b(h))
        loss = (h - x).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
