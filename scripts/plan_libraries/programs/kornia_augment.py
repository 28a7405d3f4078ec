import kornia
import torch
from truth import DEVICE, phase, tell

augment = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomHorizontalFlip(p=0.5),
    kornia.augmentation.RandomAffine(15.0, p=1.0),
    kornia.augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0),
)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 3, 2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 10),
).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    images = augment(torch.rand(8, 3, 64, 64, device=DEVICE))
    images = kornia.filters.gaussian_blur2d(images, (5, 5), (1.5, 1.5))
    loss = torch.nn.functional.cross_entropy(model(images), torch.randint(0, 10, (8,), device=DEVICE))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
