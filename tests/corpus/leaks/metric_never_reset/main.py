# leak
import torch
from metrics import Accuracy
from trainer import fit
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1000)).cuda()
fit(model, Accuracy(), epochs=5, batches=12)
