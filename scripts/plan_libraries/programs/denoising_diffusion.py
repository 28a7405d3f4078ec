import torch
from denoising_diffusion_pytorch import GaussianDiffusion, Unet
from truth import DEVICE, phase, tell

model = GaussianDiffusion(
    Unet(dim=32, dim_mults=(1, 2), flash_attn=False), image_size=32, timesteps=100, sampling_timesteps=2
).to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
for _ in range(2):
    loss = model(torch.rand(4, 3, 32, 32, device=DEVICE))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
model.eval()
print(model.sample(batch_size=2).shape)
phase("evaluation")
tell(model, optimizer, steps=2)
