import lightning as L
import torch
import torchmetrics
from truth import DEVICE, phase, tell


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(784, 2048),
            torch.nn.ReLU(),
            torch.nn.Linear(2048, 2048),
            torch.nn.ReLU(),
            torch.nn.Linear(2048, 10),
        )
        self.accuracy = torchmetrics.classification.MulticlassAccuracy(num_classes=10)
        self.confusion = torchmetrics.MetricCollection(
            [torchmetrics.classification.MulticlassF1Score(num_classes=10), torchmetrics.MeanMetric()],
            compute_groups=False,
        )

    def training_step(self, batch, index):
        x, y = batch
        logits = self.net(x)
        loss = torch.nn.functional.cross_entropy(logits, y)
        self.log("loss", loss, prog_bar=True)
        self.accuracy(logits, y)
        self.log("accuracy", self.accuracy, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        logits = self.net(x)
        self.log("val_loss", torch.nn.functional.cross_entropy(logits, y))
        self.accuracy.update(logits, y)
        self.log("val_accuracy", self.accuracy)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


data = torch.utils.data.TensorDataset(torch.randn(512, 784), torch.randint(0, 10, (512,)))
loader = torch.utils.data.DataLoader(data, batch_size=128)
model = Classifier()
trainer = L.Trainer(
    max_epochs=2,
    accelerator="gpu" if DEVICE == "cuda" else "cpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, loader, loader)
phase("training")
phase("evaluation")
tell(model, trainer.optimizers, steps=trainer.global_step)
