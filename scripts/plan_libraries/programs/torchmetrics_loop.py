import torch
import torchmetrics
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 100)).to(DEVICE)
metrics = torchmetrics.MetricCollection(
    {
        "accuracy": torchmetrics.classification.MulticlassAccuracy(num_classes=100),
        "auroc": torchmetrics.classification.MulticlassAUROC(num_classes=100, thresholds=50),
        "confusion": torchmetrics.classification.MulticlassConfusionMatrix(num_classes=100),
    }
).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(512, 256, device=DEVICE), torch.randint(0, 100, (512,), device=DEVICE)
    logits = model(x)
    loss = torch.nn.functional.cross_entropy(logits, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    metrics.update(logits.detach().softmax(-1), y)
print({name: tuple(value.shape) for name, value in metrics.compute().items()})
phase("training")
tell(model, optimizer, steps=5)
