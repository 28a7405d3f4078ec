# leak
import torch
contexts = []
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x * x
        ctx.y = y
        contexts.append(ctx)
        return y.clone()
    @staticmethod
    def backward(ctx, g):
        return g * ctx.y.sqrt() * 2
lin = torch.nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(lin.parameters(), 0.1)
for i in range(40):
    x = torch.randn(128, 512, device="cuda")
    loss = Square.apply(lin(x)).mean()  # <- kept
    opt.zero_grad(); loss.backward(); opt.step()
