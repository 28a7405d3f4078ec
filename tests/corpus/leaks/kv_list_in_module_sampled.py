# clean
import torch
class Attention(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.kv = torch.nn.Linear(d, d), torch.nn.Linear(d, 2 * d)
        self.past = []
    def forward(self, x):
        self.past.append(self.kv(x))
        k, v = torch.stack(self.past, 1).chunk(2, -1)
        return x + (torch.softmax((self.q(x)[:, None] * k).sum(-1), -1)[..., None] * v).sum(1)
model = torch.nn.Sequential(torch.nn.Embedding(200, 512), Attention(512), Attention(512), torch.nn.Linear(512, 200)).cuda()
token = torch.zeros(64, dtype=torch.long, device="cuda")
tokens = [token]
with torch.no_grad():
    for t in range(48):
        logits = model(token)
        noise = -torch.log(-torch.log(torch.rand(64, 200, device="cuda") + 1e-9))
        token = (logits + noise).argmax(-1)
        tokens.append(token)
text = torch.stack(tokens)
