# clean
import torch
layers = []
for i in range(40):
    layer = torch.nn.Linear(512, 512)
    torch.nn.init.xavier_uniform_(layer.weight)
    layers.append(layer.to("cuda"))
