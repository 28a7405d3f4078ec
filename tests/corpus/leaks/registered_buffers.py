# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for i in range(25):
    x = torch.randn(256, 512, device="cuda")
    loss = model(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    mask = torch.ones(256, 512, device="cuda")  # <- kept
    model.register_buffer(f"mask{i}", mask)
