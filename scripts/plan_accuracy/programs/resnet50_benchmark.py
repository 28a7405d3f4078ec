"""ResNet-50, channels-last, autocast in bfloat16, cudnn.benchmark; SGD."""
import torch
import torch.nn.functional as F
from resnet_model import ResNet50

torch.backends.cudnn.benchmark = True
model = ResNet50().cuda().to(memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
for step in range(3):
    images = torch.randn(64, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(images), torch.randint(1000, (64,), device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
