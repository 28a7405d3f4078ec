"""torchvision's RetinaNet with ResNet-50, random weights: trained on two images, then inference; SGD, float32."""
import torch
from torchvision.models.detection import retinanet_resnet50_fpn

torch.manual_seed(0)
model = retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91).cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0005, momentum=0.9)
for step in range(4):
    images = [torch.rand(3, 600, 800, device="cuda"), torch.rand(3, 480, 640, device="cuda")]
    targets = []
    for image in images:
        corner = torch.rand(5, 2, device="cuda") * 200
        targets.append({"boxes": torch.cat([corner, corner + 50 + torch.rand(5, 2, device="cuda") * 150], 1), "labels": torch.randint(1, 91, (5,), device="cuda")})
    loss = sum(model(images, targets).values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    model([torch.rand(3, 600, 800, device="cuda")])
