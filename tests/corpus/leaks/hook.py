# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
seen = []
model[0].register_forward_hook(lambda m, i, o: seen.append(o.detach()))
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(25):
    loss = model(torch.randn(256, 512, device="cuda")).pow(2).mean()  # <- kept
    opt.zero_grad(); loss.backward(); opt.step()
