import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet
from truth import DEVICE, phase, tell


class Convolution(torch.nn.Module):
    def __init__(self, irreps_in, irreps_sh, irreps_out):
        super().__init__()
        self.irreps_sh = o3.Irreps(irreps_sh)
        self.tp = o3.FullyConnectedTensorProduct(irreps_in, irreps_sh, irreps_out, shared_weights=False)
        self.fc = FullyConnectedNet([8, 64, self.tp.weight_numel], torch.relu)

    def forward(self, x, source, vectors, lengths):
        sh = o3.spherical_harmonics(self.irreps_sh, vectors, normalize=True, normalization="component")
        return self.tp(x[source], sh, self.fc(lengths))


model = Convolution("16x0e + 8x1o", "0e + 1o + 2e", "16x0e + 8x1o").to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(200, 16 + 24, device=DEVICE)
source = torch.randint(0, 200, (1500,), device=DEVICE)
for _ in range(3):
    loss = model(x, source, torch.randn(1500, 3, device=DEVICE), torch.randn(1500, 8, device=DEVICE)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
tell(model, optimizer, steps=3)
