# clean
import torch
weights = torch.randn(24, 512, 512, device="cuda")
x = torch.randn(1024, 512, device="cuda")
hidden = []
with torch.no_grad():
    for layer in range(24):
        for head in range(4):
            part = torch.softmax(x[:, head * 128:(head + 1) * 128] @ x[:, head * 128:(head + 1) * 128].T, -1)
        x = torch.relu(x @ weights[layer])
        hidden.append(x)
