import gpytorch
import torch
from truth import DEVICE, phase, tell


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = torch.linspace(0, 1, 500, device=DEVICE)
y = torch.sin(6 * x)
likelihood = gpytorch.likelihoods.GaussianLikelihood().to(DEVICE)
model = Exact(x, y, likelihood).to(DEVICE)
model.train(), likelihood.train()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
for _ in range(5):
    optimizer.zero_grad()
    loss = -marginal(model(x), y)
    loss.backward()
    optimizer.step()
phase("training")
model.eval(), likelihood.eval()
with torch.no_grad(), gpytorch.settings.fast_pred_var():
    print(likelihood(model(torch.linspace(0, 1, 51, device=DEVICE))).mean.shape)
phase("evaluation")
tell(model, optimizer, steps=5)
