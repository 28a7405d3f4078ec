import torch
from fairscale.nn import checkpoint_wrapper
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(
    *(
        checkpoint_wrapper(torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)))
        for _ in range(4)
    )
).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    loss = model(torch.randn(256, 512, device=DEVICE, requires_grad=True)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
