import torch
from torchdiffeq import odeint_adjoint as odeint
from truth import DEVICE, phase, tell


class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 64))

    def forward(self, t, y):
        return self.net(y)


model = Field().to(DEVICE)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for _ in range(3):
    path = odeint(model, torch.randn(128, 64, device=DEVICE), torch.linspace(0, 1, 10, device=DEVICE), method="rk4")
    loss = path.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
