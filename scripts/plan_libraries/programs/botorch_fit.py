import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from truth import DEVICE, phase, tell

x = torch.rand(60, 4, device=DEVICE, dtype=torch.double)
y = (x * x).sum(-1, keepdim=True)
model = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs={"options": {"maxiter": 3}})
phase("training")
print(LogExpectedImprovement(model, best_f=y.max())(torch.rand(5, 1, 4, device=DEVICE, dtype=torch.double)).shape)
phase("evaluation")
tell(model)
