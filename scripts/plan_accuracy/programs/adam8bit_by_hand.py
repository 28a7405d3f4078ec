"""Adam with its moments kept in eight bits per block of 2,048, a scale beside each block; weights and gradients in bfloat16."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BLOCK = 2048


def quantize(x, signed=True):
    flat = x.flatten()
    pad = -flat.numel() % BLOCK
    blocks = F.pad(flat, (0, pad)).view(-1, BLOCK)
    scale = blocks.abs().amax(dim=1, keepdim=True).clamp_(min=1e-12)
    if signed:
        return (blocks / scale * 127).round_().to(torch.int8), scale
    return (blocks / scale).sqrt_().mul_(255).round_().to(torch.uint8), scale


def dequantize(code, scale, like):
    values = code.float()
    values = values.div_(127) if code.dtype == torch.int8 else values.div_(255).square_()
    return values.mul_(scale).flatten()[:like.numel()].view_as(like)


class Adam8bit(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                st = self.state[p]
                if "t" not in st:
                    st["t"] = 0
                    st["m"], st["v"] = quantize(torch.zeros_like(p, dtype=torch.float)), quantize(torch.zeros_like(p, dtype=torch.float), signed=False)
                st["t"] += 1
                g = p.grad.float()
                m = dequantize(*st["m"], g).mul_(b1).add_(g, alpha=1 - b1)
                v = dequantize(*st["v"], g).mul_(b2).addcmul_(g, g, value=1 - b2)
                denom = (v / (1 - b2 ** st["t"])).sqrt_().add_(group["eps"])
                p.add_((m / denom).to(p.dtype), alpha=-group["lr"] / (1 - b1 ** st["t"]))
                st["m"], st["v"] = quantize(m), quantize(v, signed=False)


class Mixer(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token = nn.Sequential(nn.Linear(tokens, tokens * 2), nn.GELU(), nn.Linear(tokens * 2, tokens))
        self.channel = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        x = x + self.token(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel(self.n2(x))


torch.manual_seed(0)
with torch.device("cuda"):
    net = nn.Sequential(nn.Conv2d(3, 1536, 16, 16), nn.Flatten(2))
    trunk = nn.Sequential(*[Mixer(196, 1536) for _ in range(20)])
    head = nn.Linear(1536, 1000)
model = nn.ModuleList([net, trunk, head]).to(torch.bfloat16)
optimizer = Adam8bit(model.parameters())
for step in range(3):
    images, labels = torch.randn(32, 3, 224, 224, device="cuda", dtype=torch.bfloat16), torch.randint(1000, (32,), device="cuda")
    logits = head(trunk(net(images).transpose(1, 2)).mean(dim=1))
    loss = F.cross_entropy(logits.float(), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: {loss.item():.4f}")
