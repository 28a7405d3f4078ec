# leak
import torch
weight = torch.randn(512, 512, device="cuda")
keys, values = [], []
for request in range(30):
    x = torch.randn(512, 512, device="cuda")
    hidden = torch.relu(x @ weight)
    keys.append(hidden @ weight)  # <- kept
    values.append(hidden.exp())  # <- kept
    scores = (hidden @ hidden.T).softmax(-1)
