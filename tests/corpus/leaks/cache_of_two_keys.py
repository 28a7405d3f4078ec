# clean
import torch
weight = torch.randn(512, 512, device="cuda")
cache = {}
def serve(request):
    x = torch.randn(256, 512, device="cuda")
    y = torch.relu(x @ weight)
    z = y.softmax(-1)
    cache[request % 2] = z @ weight
    return z.sum()
for request in range(60):
    serve(request)
