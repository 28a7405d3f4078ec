import numpy as np
import torch
from skorch import NeuralNetClassifier
from truth import DEVICE, phase, tell

x, y = np.random.randn(512, 128).astype("float32"), np.random.randint(0, 5, 512)
net = NeuralNetClassifier(
    torch.nn.Sequential(torch.nn.Linear(128, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 5)),
    criterion=torch.nn.CrossEntropyLoss,
    max_epochs=2,
    batch_size=128,
    lr=0.1,
    optimizer=torch.optim.SGD,
    optimizer__momentum=0.9,
    device=DEVICE,
    verbose=0,
)
net.fit(x, y)
phase("training")
phase("evaluation")
print(net.predict(x).shape)
tell(net.module_, net.optimizer_, steps=8)
