import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDiagonalNormal
from pyro.nn import PyroModule, PyroSample
from truth import DEVICE, phase, tell


class Regression(PyroModule):
    def __init__(self, width):
        super().__init__()
        self.linear = PyroModule[torch.nn.Linear](width, 1)
        zero, one = torch.tensor(0.0, device=DEVICE), torch.tensor(1.0, device=DEVICE)
        self.linear.weight = PyroSample(dist.Normal(zero, one).expand([1, width]).to_event(2))
        self.linear.bias = PyroSample(dist.Normal(zero, one).expand([1]).to_event(1))

    def forward(self, x, y=None):
        mean = self.linear(x).squeeze(-1)
        with pyro.plate("data", x.shape[0]):
            return pyro.sample("obs", dist.Normal(mean, 1.0), obs=y)


x, y = torch.randn(4096, 1000, device=DEVICE), torch.randn(4096, device=DEVICE)
model = Regression(1000)
guide = AutoDiagonalNormal(model)
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.01}), loss=Trace_ELBO())
for _ in range(5):
    svi.step(x, y)
phase("training")
tell(guide, list(svi.optim.optim_objs.values()), steps=5)
