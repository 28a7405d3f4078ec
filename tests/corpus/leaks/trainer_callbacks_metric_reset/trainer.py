import torch
class Callback:
    def on_batch_end(self, trainer, x, y, out): ...
    def on_epoch_end(self, trainer): ...
class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks, self.log = model, callbacks, []
        self.optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    def training_step(self, x, y):
        out = self.model(x)
        torch.nn.functional.cross_entropy(out, y).backward()
        return out
    def fit(self, epochs, batches):
        for _ in range(epochs):
            for _ in range(batches):
                x, y = torch.randn(128, 256, device="cuda"), torch.randint(0, 1000, (128,), device="cuda")
                self.optimizer.zero_grad()
                out = self.training_step(x, y)
                self.optimizer.step()
                for callback in self.callbacks:
                    callback.on_batch_end(self, x, y, out)
            for callback in self.callbacks:
                callback.on_epoch_end(self)
