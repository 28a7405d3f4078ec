# clean
import torch
batches = []
for _ in range(100):
    raw = torch.randn(1024, 256).cuda()
    centred = raw - raw.mean(0)
    batches.append(centred / centred.std(0))
    del raw, centred
weight = torch.randn(256, 8, device="cuda")
for batch in batches:
    score = (batch @ weight).sum()
