"""ResNet-50, channels last, autocast to float16 with a GradScaler."""
import torch

from resnet_model import ResNet50

batch_size = 64
model = ResNet50().to("cuda", memory_format=torch.channels_last)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)(init_scale=1024.0)  # of any device since 2.3
for step in range(3):
    images = torch.randn(batch_size, 3, 224, 224).to("cuda", memory_format=torch.channels_last)
    labels = torch.randint(1000, (batch_size,), device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
