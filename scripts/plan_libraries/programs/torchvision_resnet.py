import torch
import torchvision
from truth import DEVICE, phase, tell

model = torchvision.models.resnet18(weights=None, num_classes=10).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
mix = torchvision.transforms.v2.MixUp(num_classes=10)
for _ in range(2):
    images, labels = mix(torch.randn(8, 3, 64, 64, device=DEVICE), torch.randint(0, 10, (8,), device=DEVICE))
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=2)
