import open_clip
import torch
from truth import DEVICE, phase, tell

model = open_clip.model.CLIP(
    128,
    open_clip.model.CLIPVisionCfg(layers=2, width=128, head_width=32, patch_size=16, image_size=64),
    open_clip.model.CLIPTextCfg(context_length=32, vocab_size=4000, width=128, heads=4, layers=2),
).to(DEVICE)
loss_of = open_clip.ClipLoss()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    image, text, scale = model(torch.randn(8, 3, 64, 64, device=DEVICE), torch.randint(1, 4000, (8, 32), device=DEVICE))
    loss = loss_of(image, text, scale)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=2)
