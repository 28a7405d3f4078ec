# clean
import torch
encoder = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256)).cuda().eval()
def encode_all(n):
    parts = []
    for i in range(n):
        docs = torch.randn(256, 256, device="cuda")
        with torch.no_grad():
            parts.append(encoder(docs))
    return parts
parts = encode_all(40)
matrix = torch.cat(parts)
