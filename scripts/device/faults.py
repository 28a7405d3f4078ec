"""PyTorch programs that fault, one each: faults.py KIND."""

import sys

import torch


def index():
    table = torch.arange(10, device="cuda")
    print(table[torch.tensor([3, 99], device="cuda")])  # fault: index


def embedding():
    torch.manual_seed(0)
    table = torch.nn.Embedding(10, 4).cuda()
    rows = table(torch.tensor([3, 99], device="cuda"))  # fault: embedding
    print("sum", torch.relu(rows).sum().item())


def well():
    print(torch.arange(10, device="cuda")[torch.tensor([3, 9], device="cuda")])


{"index": index, "embedding": embedding, "well": well}[sys.argv[1]]()
