# gpu: 2GiB
"""An autoencoder of images whose batch stands in a dictionary."""
import torch
from torch import nn

config = {"batch_size": 32, "width": 96}
w = config["width"]
encoder = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.SiLU(), nn.Conv2d(w, 2 * w, 4, 2, 1), nn.SiLU())
decoder = nn.Sequential(nn.ConvTranspose2d(2 * w, w, 4, 2, 1), nn.SiLU(), nn.Conv2d(w, 3, 3, padding=1))
model = nn.Sequential(encoder, decoder).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(4):
    images = torch.randn(config["batch_size"], 3, 128, 128, device="cuda")
    loss = (model(images) - images).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
