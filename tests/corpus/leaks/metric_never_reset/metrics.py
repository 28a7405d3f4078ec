import torch
class Accuracy:
    def __init__(self):
        self.outs, self.targets = [], []
    def update(self, out, target):
        self.outs.append(out.softmax(-1))  # <- kept
        self.targets.append(target)
    def compute(self):
        return (torch.cat(self.outs).argmax(-1) == torch.cat(self.targets)).float().mean().item()
