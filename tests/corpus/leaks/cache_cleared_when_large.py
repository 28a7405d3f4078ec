# clean
import torch
weight = torch.randn(512, 512, device="cuda")
cache = {}
def serve(request):
    x = torch.randn(256, 512, device="cuda")
    y = torch.relu(x @ weight)
    z = y.softmax(-1)
    cache[request] = z @ weight
    if len(cache) >= 16:
        cache.clear()
    return z.sum()
for request in range(90):
    serve(request)
