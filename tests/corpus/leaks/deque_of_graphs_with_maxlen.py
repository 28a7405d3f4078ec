# clean
import torch
from collections import deque
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
recent = deque(maxlen=60)
for step in range(40):
    loss = model(torch.randn(512, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    recent.append(model(torch.randn(512, 512, device="cuda")))
