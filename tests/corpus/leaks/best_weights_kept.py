# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.Adam(model.parameters())
best = None
for i in range(20):
    loss = model(torch.randn(128, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    best = {k: v.clone() for k, v in model.state_dict().items()}
