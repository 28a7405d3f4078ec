import torch
from opacus import PrivacyEngine
from truth import DEVICE, phase, tell

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(DEVICE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(256, 256), torch.randint(0, 10, (256,))), batch_size=64
)
model, optimizer, loader = PrivacyEngine().make_private(
    module=model,
    optimizer=optimizer,
    data_loader=loader,
    noise_multiplier=1.0,
    max_grad_norm=1.0,
    poisson_sampling=False,
)
for x, y in loader:
    loss = torch.nn.functional.cross_entropy(model(x.to(DEVICE)), y.to(DEVICE))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer.original_optimizer, steps=4)
