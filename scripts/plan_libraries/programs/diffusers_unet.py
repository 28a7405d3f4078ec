import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from truth import DEVICE, phase, tell

model = UNet2DModel(
    sample_size=32,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(64, 128),
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
).to(DEVICE)
scheduler = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(2):
    clean = torch.randn(4, 3, 32, 32, device=DEVICE)
    noise = torch.randn_like(clean)
    times = torch.randint(0, 1000, (4,), device=DEVICE)
    loss = torch.nn.functional.mse_loss(model(scheduler.add_noise(clean, noise, times), times).sample, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
pipeline = DDPMPipeline(unet=model, scheduler=scheduler)
pipeline.set_progress_bar_config(disable=True)
print(pipeline(batch_size=2, num_inference_steps=3, output_type="np").images.shape)
phase("evaluation")
tell(model, optimizer, steps=2)
