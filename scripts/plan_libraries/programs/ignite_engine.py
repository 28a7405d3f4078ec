import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters())
loss_of = torch.nn.CrossEntropyLoss()
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(256, 256), torch.randint(0, 10, (256,))), batch_size=64
)
trainer = create_supervised_trainer(model, optimizer, loss_of, device=DEVICE)
evaluator = create_supervised_evaluator(model, metrics={"accuracy": Accuracy(), "loss": Loss(loss_of)}, device=DEVICE)
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda engine: evaluator.run(loader))
trainer.run(loader, max_epochs=2)
phase("training")
phase("evaluation")
tell(model, optimizer, steps=8)
