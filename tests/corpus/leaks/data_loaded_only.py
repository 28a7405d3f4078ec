# clean
import torch
data = []
for i in range(100):
    x = torch.randn(256, 512).cuda()
    data.append((x - x.mean()) / 2)
