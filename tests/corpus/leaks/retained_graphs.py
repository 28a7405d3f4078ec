# leak
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU()).cuda()
losses = []
for i in range(25):
    x = torch.randn(256, 512, device="cuda")
    loss = model(x).pow(2).mean()  # <- kept
    loss.backward(retain_graph=True)
    losses.append(loss)
