# clean
import torch
def init(n, d):
    return {"blocks": [{"w1": torch.randn(d, 2 * d, device="cuda", requires_grad=True), "w2": torch.randn(2 * d, d, device="cuda", requires_grad=True)} for _ in range(n)]}
def block(p, x):
    h = torch.nn.functional.gelu(x @ p["w1"])
    return x + h @ p["w2"]
def forward(params, x):
    for p in params["blocks"]:
        x = block(p, x)
    return x
params = init(48, 256)
loss = forward(params, torch.randn(512, 256, device="cuda")).pow(2).mean()
