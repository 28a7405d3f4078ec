# clean
import torch
blocks = [torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda().eval() for _ in range(16)]
hidden = []
with torch.no_grad():
    h = torch.randn(16, 128, 128, device="cuda")
    for block in blocks:
        h = block(h)
        hidden.append(h)
