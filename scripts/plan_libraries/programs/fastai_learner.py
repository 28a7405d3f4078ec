import torch
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, CrossEntropyLossFlat
from truth import DEVICE, phase, tell

torch.manual_seed(0)
data = [(torch.randn(784), torch.randint(0, 10, ()).item()) for _ in range(256)]
loaders = DataLoaders(DataLoader(data, bs=64, shuffle=True), DataLoader(data, bs=64), device=torch.device(DEVICE))
model = torch.nn.Sequential(torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
learner = Learner(loaders, model, loss_func=CrossEntropyLossFlat(), metrics=accuracy)
learner.model.to(DEVICE)
with learner.no_bar(), learner.no_logging():
    learner.fit(2, 1e-3)
phase("training")
phase("evaluation")
tell(model, learner.opt, steps=8)
