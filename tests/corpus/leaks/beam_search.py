# clean
import torch
emb, w = torch.randn(1000, 256, device="cuda"), torch.randn(256, 1000, device="cuda")
beams = [(torch.zeros(64, 256, device="cuda"), 0.0)]
with torch.no_grad():
    for t in range(30):
        new = []
        for h, s in beams:
            p = (h @ w).log_softmax(-1)
            v, i = p.topk(4)
            for j in range(4):
                new.append((torch.tanh(h + emb[i[:, j]]), s + j))
        beams = sorted(new, key=lambda b: b[1])[:4]
