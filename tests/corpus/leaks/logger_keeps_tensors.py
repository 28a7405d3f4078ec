# leak
import logging, logging.handlers, torch
log = logging.getLogger("train"); log.setLevel(logging.INFO); log.propagate = False
log.addHandler(logging.handlers.MemoryHandler(100000, flushLevel=logging.CRITICAL))
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
opt = torch.optim.Adam(model.parameters())
for step in range(40):
    x = torch.randn(128, 512, device="cuda")
    out = model(x)  # <- kept
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    log.info("step %d: out %s", step, out.detach())
