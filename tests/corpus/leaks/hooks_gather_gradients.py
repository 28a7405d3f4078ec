# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []
model[2].register_full_backward_hook(lambda module, grad_in, grad_out: seen.append(grad_in[0]))
for step in range(30):
    loss = model(torch.randn(512, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()  # <- kept
