# gpu: 2GiB
"""A DQN whose replay buffer keeps frames as float32 on the GPU."""
import random
from collections import deque

import torch
from torch import nn

buffer = deque(maxlen=50_000)
q = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(5184, 512), nn.ReLU(), nn.Linear(512, 6)).cuda()
optimizer = torch.optim.Adam(q.parameters(), lr=1e-4)
state = torch.zeros(4, 84, 84, device="cuda")
for step in range(20_000):
    action = random.randrange(6)
    new = torch.rand(4, 84, 84, device="cuda")
    buffer.append((state, action, new))
    state = new
    if len(buffer) >= 64:
        states, actions, news = zip(*random.sample(buffer, 64))
        target = q(torch.stack(news)).amax(1).detach()
        value = q(torch.stack(states)).gather(1, torch.tensor(actions, device="cuda")[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
