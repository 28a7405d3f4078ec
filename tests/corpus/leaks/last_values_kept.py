# clean
import collections, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
last = collections.deque(maxlen=10)
with torch.no_grad():
    for i in range(60):
        last.append(model(torch.randn(256, 512, device="cuda")))
