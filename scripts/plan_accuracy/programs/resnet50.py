"""ResNet-50 in float32 with SGD."""
import torch

from resnet_model import ResNet50

batch_size = 32
model = ResNet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_fn = torch.nn.CrossEntropyLoss()
for step in range(3):
    images = torch.randn(batch_size, 3, 224, 224).cuda()
    labels = torch.randint(1000, (batch_size,)).cuda()
    loss = loss_fn(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
