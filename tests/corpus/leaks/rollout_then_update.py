# clean
import torch
policy = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4)).cuda()
opt = torch.optim.Adam(policy.parameters())
for episode in range(9):
    states = []
    for t in range(20):
        s = torch.randn(128, 256, device="cuda")
        with torch.no_grad():
            policy(s)
        states.append(s)
    loss = policy(torch.cat(states)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
