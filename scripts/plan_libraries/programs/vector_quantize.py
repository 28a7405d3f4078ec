import torch
from truth import DEVICE, phase, tell
from vector_quantize_pytorch import ResidualVQ

encoder = torch.nn.Linear(256, 256).to(DEVICE)
quantizer = ResidualVQ(dim=256, num_quantizers=4, codebook_size=512).to(DEVICE)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for _ in range(3):
    x = torch.randn(4, 128, 256, device=DEVICE)
    quantized, _, commit = quantizer(encoder(x))
    loss = (quantized - x).square().mean() + commit.sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell([encoder, quantizer], optimizer, steps=3)
