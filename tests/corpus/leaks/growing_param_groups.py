# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(25):
    extra = torch.randn(512, 512, device="cuda")  # <- kept
    opt.add_param_group({"params": [extra.requires_grad_()]})
    loss = model(torch.randn(256, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
