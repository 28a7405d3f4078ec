# clean
import torch
torch.distributions.Distribution.set_default_validate_args(False)
class ActorCritic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh())
        self.actor, self.critic = torch.nn.Linear(256, 8), torch.nn.Linear(256, 1)
    def forward(self, s):
        h = self.body(s)
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)
net = ActorCritic().cuda()
opt = torch.optim.Adam(net.parameters(), 3e-4)
s = torch.randn(64, 256, device="cuda")
for iteration in range(4):
    rollout = []
    for t in range(32):
        with torch.no_grad():
            pi, v = net(s)
            a = pi.sample()
        rollout.append((s, a, pi.log_prob(a), v))
        s = torch.randn(64, 256, device="cuda")
    states, actions, old, values = (torch.cat(x) for x in zip(*rollout))
    for epoch in range(3):
        for idx in torch.randperm(len(states), device="cuda").split(512):
            pi, v = net(states[idx])
            ratio = (pi.log_prob(actions[idx]) - old[idx]).exp()
            loss = -torch.min(ratio, ratio.clamp(0.8, 1.2)).mean() + (v - values[idx]).pow(2).mean()
            opt.zero_grad(); loss.backward(); opt.step()
