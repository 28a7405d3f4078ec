import timm
import torch
from timm.optim import create_optimizer_v2
from truth import DEVICE, phase, tell

model = timm.create_model("vit_tiny_patch16_224", pretrained=False, img_size=64, num_classes=10).to(DEVICE)
optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3)
for _ in range(2):
    loss = torch.nn.functional.cross_entropy(
        model(torch.randn(8, 3, 64, 64, device=DEVICE)), torch.randint(0, 10, (8,), device=DEVICE)
    )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=2)
