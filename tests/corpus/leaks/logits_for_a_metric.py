# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1000)).cuda()
opt = torch.optim.AdamW(model.parameters())
logits = []
for i in range(25):
    out = model(torch.randn(128, 256, device="cuda"))  # <- kept
    loss = out.logsumexp(-1).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    logits.append(out.detach())
