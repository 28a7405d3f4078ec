# clean
import torch
from metrics import Accuracy
from trainer import Callback, Trainer
class Collect(Callback):
    def __init__(self):
        self.metric = Accuracy()
    def on_batch_end(self, trainer, x, y, out):
        self.metric.update(out.detach(), y)
    def on_epoch_end(self, trainer):
        trainer.log.append(self.metric.compute())
        self.metric.reset()
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1000)).cuda()
Trainer(model, [Collect()]).fit(epochs=5, batches=12)
