"""torchvision's Mask R-CNN in inference alone, random weights, two images."""
import torch
from torchvision.models.detection import maskrcnn_resnet50_fpn

torch.manual_seed(0)
model = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None).cuda().eval()
with torch.no_grad():
    for _ in range(3):
        model([torch.rand(3, 600, 800, device="cuda"), torch.rand(3, 480, 640, device="cuda")])
