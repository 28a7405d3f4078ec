# clean
import torch
def numbers(n):
    for i in range(n):
        yield torch.randn(64, 512).cuda()
def scaled(source):
    for x in source:
        yield x / x.norm()
def paired(source):
    last = None
    for x in source:
        if last is not None:
            yield last, x
        last = x
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.AdamW(model.parameters())
for a, b in paired(scaled(numbers(40))):
    loss = (model(a) - b).pow(2).mean()
    opt.zero_grad(set_to_none=True); loss.backward(); opt.step()
