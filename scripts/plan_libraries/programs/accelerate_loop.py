import torch
from accelerate import Accelerator
from truth import DEVICE, phase, tell

accelerator = Accelerator(cpu=DEVICE == "cpu", gradient_accumulation_steps=2)
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(128, 64, 256)), batch_size=16)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for (x,) in loader:
    with accelerator.accumulate(model):
        loss = (model(x) - x).square().mean()
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
phase("training")
tell(model, optimizer.optimizer, steps=4)
