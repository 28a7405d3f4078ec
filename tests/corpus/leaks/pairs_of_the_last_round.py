# clean
import torch
weight = torch.randn(512, 512, device="cuda")
keys, values = [], []
for request in range(30):
    x = torch.randn(512, 512, device="cuda")
    hidden = torch.relu(x @ weight)
    keys = [hidden @ weight]
    values = [hidden.exp()]
    scores = (hidden @ hidden.T).softmax(-1)
