"""GPT-2 small under autocast with a GradScaler, batch 8 x 1024."""
import torch

from gpt_model import GPT

batch_size = 8
model = GPT().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(init_scale=1024.0)  # of any device since 2.3
for step in range(2):
    ids = torch.randint(50257, (batch_size, 1024)).to("cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(ids, ids)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item())
