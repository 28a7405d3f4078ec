# gpu: 2GiB
"""Never trains, and never says so."""
import torch
from torch import nn

model = nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 8).cuda()
for step in range(4):
    features = model(torch.randn(64, 512, 256, device="cuda"))
    print(features.shape)
