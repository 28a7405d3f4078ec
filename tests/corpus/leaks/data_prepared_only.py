# clean
import torch
batches = []
for _ in range(100):
    raw = torch.randn(1024, 256).cuda()
    centred = raw - 0.5
    batches.append(centred / 2)
    del raw, centred
