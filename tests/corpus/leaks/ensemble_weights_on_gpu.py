# clean
import torch
states = []
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(40):
    loss = model(torch.randn(128, 256, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    states.append({k: v.clone() for k, v in model.state_dict().items()})
    states = states[-5:]
