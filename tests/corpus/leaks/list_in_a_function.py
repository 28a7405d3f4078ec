# leak
import torch
def train():
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    for i in range(25):
        out = model(torch.randn(256, 512, device="cuda"))  # <- kept
        loss = out.pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
        kept.append(out.detach())
train()
