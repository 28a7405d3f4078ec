import torch
from captum.attr import IntegratedGradients
from truth import DEVICE, tell

model = (
    torch.nn.Sequential(
        torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(32 * 30 * 30, 10)
    )
    .to(DEVICE)
    .eval()
)
images = torch.rand(4, 3, 32, 32, device=DEVICE)
found, delta = IntegratedGradients(model).attribute(images, target=3, n_steps=20, return_convergence_delta=True)
print(found.shape, delta.shape)
tell(model)
