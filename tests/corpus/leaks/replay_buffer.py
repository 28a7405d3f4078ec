# clean
import collections, torch
policy = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 4)).cuda()
opt = torch.optim.Adam(policy.parameters())
buffer = collections.deque(maxlen=32)
state = torch.randn(512, 64, device="cuda")
for t in range(100):
    with torch.no_grad():
        action = policy(state).argmax(-1)
    state = torch.randn(512, 64, device="cuda")
    buffer.append((state, action))
    if t > 8:
        loss = policy(torch.cat([s for s, _ in list(buffer)[-4:]])).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
