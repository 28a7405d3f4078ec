"""Adafactor written as an Optimizer: second moments by rows and columns, updates clipped by their own root mean square; a wide residual MLP on tabular data."""
import torch
import torch.nn as nn


class Adafactor(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, eps=1e-30, clip=1.0, decay=-0.8):
        super().__init__(params, dict(lr=lr, eps=eps, clip=clip, decay=decay))

    @staticmethod
    def rms(x):
        return x.norm(2) / x.numel() ** 0.5

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad, state = p.grad.float(), self.state[p]
                factored = grad.dim() >= 2
                if not state:
                    state["step"] = 0
                    if factored:
                        state["row"] = torch.zeros(grad.shape[:-1], device=grad.device)
                        state["col"] = torch.zeros(grad.shape[:-2] + grad.shape[-1:], device=grad.device)
                    else:
                        state["sq"] = torch.zeros_like(grad)
                state["step"] += 1
                beta = 1.0 - state["step"] ** group["decay"]
                square = grad ** 2 + group["eps"]
                if factored:
                    state["row"].mul_(beta).add_(square.mean(dim=-1), alpha=1 - beta)
                    state["col"].mul_(beta).add_(square.mean(dim=-2), alpha=1 - beta)
                    r = (state["row"] / state["row"].mean(dim=-1, keepdim=True)).rsqrt_().unsqueeze(-1)
                    update = torch.mul(r, state["col"].unsqueeze(-2).rsqrt()).mul_(grad)
                else:
                    state["sq"].mul_(beta).add_(square, alpha=1 - beta)
                    update = state["sq"].rsqrt().mul_(grad)
                update.div_((self.rms(update) / group["clip"]).clamp_(min=1.0))
                p.add_(update, alpha=-group["lr"])


class Residual(nn.Module):
    def __init__(self, d, factor=4):
        super().__init__()
        self.net = nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, factor * d), nn.ReLU(), nn.Dropout(0.1), nn.Linear(factor * d, d))

    def forward(self, x):
        return x + self.net(x)


torch.manual_seed(0)
with torch.device("cuda"):
    model = nn.Sequential(nn.Linear(300, 4096), *[Residual(4096) for _ in range(4)], nn.BatchNorm1d(4096), nn.ReLU(), nn.Linear(4096, 1))
optimizer = Adafactor(model.parameters())
for step in range(3):
    x, y = torch.randn(2048, 300, device="cuda"), torch.randn(2048, 1, device="cuda")
    loss = nn.functional.huber_loss(model(x), y)
    model.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: {loss.item():.4f}")
