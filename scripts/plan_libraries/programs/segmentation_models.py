import segmentation_models_pytorch as smp
import torch
from truth import DEVICE, phase, tell

model = smp.Unet("resnet18", encoder_weights=None, classes=3).to(DEVICE)
loss_of = smp.losses.DiceLoss(mode="multiclass")
optimizer = torch.optim.Adam(model.parameters())
for _ in range(2):
    loss = loss_of(model(torch.randn(2, 3, 64, 64, device=DEVICE)), torch.randint(0, 3, (2, 64, 64), device=DEVICE))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=2)
