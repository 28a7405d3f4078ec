# clean
import torch
bank = torch.zeros(4096, 128, device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(20):
    f = model(torch.randn(256, 256, device="cuda"))
    loss = (f @ bank.T).logsumexp(-1).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    bank = torch.cat([f.detach(), bank])[:4096].clone()
