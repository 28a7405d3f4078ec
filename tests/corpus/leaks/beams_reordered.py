# clean
import torch
class Step(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = torch.nn.Embedding(1000, 256), torch.nn.GRUCell(256, 256), torch.nn.Linear(256, 1000)
    def forward(self, token, h):
        h = self.cell(self.embed(token), h)
        return self.head(h).log_softmax(-1), h
model, beams = Step().cuda(), 64
with torch.no_grad():
    token, h, score = torch.zeros(beams, dtype=torch.long, device="cuda"), torch.zeros(beams, 256, device="cuda"), torch.zeros(beams, 1, device="cuda")
    history = []
    for t in range(50):
        logp, h = model(token, h)
        best = (score + logp).flatten().topk(beams)
        score, token, parent = best.values[:, None], best.indices % 1000, best.indices // 1000
        h = h[parent]
        history.append((token, parent, logp))
