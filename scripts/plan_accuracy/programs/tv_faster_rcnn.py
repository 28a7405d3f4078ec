"""torchvision's Faster R-CNN with ResNet-50 and a feature pyramid, random weights, four images, trained; SGD, float32."""
import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn

torch.manual_seed(0)
model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0005, momentum=0.9)
for step in range(4):
    images = [torch.rand(3, 500, 600, device="cuda") for _ in range(4)]
    targets = []
    for image in images:
        corner = torch.rand(4, 2, device="cuda") * 200
        targets.append({"boxes": torch.cat([corner, corner + 50 + torch.rand(4, 2, device="cuda") * 150], 1), "labels": torch.randint(1, 21, (4,), device="cuda")})
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
