# clean
import torch
data = []
for i in range(70):
    data.append(torch.randn(128, 1024).cuda())
