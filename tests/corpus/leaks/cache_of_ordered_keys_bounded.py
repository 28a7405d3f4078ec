# clean
import torch
weight = torch.randn(512, 512, device="cuda")
from collections import OrderedDict
cache = OrderedDict()
def serve(request):
    x = torch.randn(256, 512, device="cuda")
    y = torch.relu(x @ weight)
    z = y.softmax(-1)
    cache[request] = z @ weight
    if len(cache) > 10:
        cache.popitem(last=False)
    return z.sum()
for request in range(60):
    serve(request)
