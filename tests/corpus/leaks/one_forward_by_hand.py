# clean
import torch
def norm(x): return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
layers = [{n: torch.randn(512, 512, device="cuda", requires_grad=True) for n in "qkvo"} | {"u": torch.randn(512, 1024, device="cuda", requires_grad=True), "d": torch.randn(1024, 512, device="cuda", requires_grad=True)} for _ in range(32)]
x = torch.randn(1, 512, 512, device="cuda")
for layer in layers:
    h = norm(x)
    q, k, v = h @ layer["q"], h @ layer["k"], h @ layer["v"]
    a = torch.softmax(q @ k.transpose(1, 2), -1)
    x = x + (a @ v) @ layer["o"]
    h = norm(x)
    x = x + torch.nn.functional.silu(h @ layer["u"]) @ layer["d"]
