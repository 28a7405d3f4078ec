# clean
import collections, random, torch
q = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)).cuda()
target = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)).cuda()
opt = torch.optim.Adam(q.parameters())
memory = collections.deque(maxlen=40)
state = torch.randn(64, 1024, device="cuda")
for t in range(160):
    with torch.no_grad():
        action = q(state).argmax(-1)
    following = state * 0.9 + torch.randn(64, 1024, device="cuda")
    memory.append((state, action, following))
    state = following
    if len(memory) >= 8:
        s, a, n = map(torch.cat, zip(*random.sample(list(memory), 4)))
        with torch.no_grad():
            goal = target(n).max(-1).values
        loss = (q(s).gather(-1, a[:, None])[:, 0] - goal).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
