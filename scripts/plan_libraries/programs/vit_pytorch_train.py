import torch
from truth import DEVICE, phase, tell
from vit_pytorch import ViT

model = ViT(image_size=64, patch_size=8, num_classes=100, dim=256, depth=4, heads=4, mlp_dim=512).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(3):
    loss = torch.nn.functional.cross_entropy(
        model(torch.randn(8, 3, 64, 64, device=DEVICE)), torch.randint(0, 100, (8,), device=DEVICE)
    )
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
