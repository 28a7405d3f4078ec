# clean
import torch
policy = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 6)).cuda()
opt = torch.optim.Adam(policy.parameters())
for episode in range(3):
    log_probs, rewards = [], []
    obs = torch.randn(32, 512, device="cuda")
    for t in range(50):
        pi = torch.distributions.Categorical(logits=policy(obs))
        action = pi.sample()
        log_probs.append(pi.log_prob(action))
        obs = torch.randn(32, 512, device="cuda")
        rewards.append(obs.mean(-1))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.stack(log_probs) * returns).mean()
    opt.zero_grad(); loss.backward(); opt.step()
