# clean
import copy, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.LayerNorm(512), torch.nn.Linear(512, 512)).cuda()
ema = copy.deepcopy(model).requires_grad_(False)
decay = [p for p in model.parameters() if p.ndim > 1]
rest = [p for p in model.parameters() if p.ndim <= 1]
opts = [torch.optim.AdamW(decay, 1e-3), torch.optim.SGD(rest, 1e-2)]
sched = [torch.optim.lr_scheduler.CosineAnnealingLR(o, 30) for o in opts]
for step in range(30):
    x = torch.randn(128, 512, device="cuda")
    loss = (model(x) - x).pow(2).mean()
    for o in opts: o.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for o, s in zip(opts, sched): o.step(); s.step()
    with torch.no_grad():
        for e, p in zip(ema.parameters(), model.parameters()): e.lerp_(p, 0.01)
    if step % 10 == 9:
        saved = {k: v.clone() for k, v in model.state_dict().items()}
        model.load_state_dict(ema.state_dict())
        with torch.no_grad(): model(x)
        model.load_state_dict(saved)
