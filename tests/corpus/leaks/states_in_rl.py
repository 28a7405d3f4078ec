# leak
import torch
policy = torch.nn.Sequential(torch.nn.Linear(512, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4)).cuda()
opt = torch.optim.Adam(policy.parameters())
history = []
for t in range(40):
    state = torch.randn(128, 512, device="cuda")  # <- kept
    loss = policy(state).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    history.append(state)
