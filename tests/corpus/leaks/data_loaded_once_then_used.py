# clean
import torch
data = []
for i in range(64):
    data.append((torch.randn(256, 512).cuda(), torch.zeros(256, dtype=torch.long).cuda()))
model = torch.nn.Linear(512, 10).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
for x, y in data:
    loss = torch.nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
