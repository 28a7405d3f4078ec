import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceLoss
from monai.networks.nets import UNet
from truth import DEVICE, phase, tell

model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(16, 32, 64), strides=(2, 2), num_res_units=1).to(
    DEVICE
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loss_of = DiceLoss(to_onehot_y=True, softmax=True)
for _ in range(2):
    image, label = torch.randn(1, 1, 32, 32, 32, device=DEVICE), torch.randint(0, 2, (1, 1, 32, 32, 32), device=DEVICE)
    loss = loss_of(model(image), label)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
phase("training")
model.eval()
with torch.no_grad():
    print(sliding_window_inference(torch.randn(1, 1, 48, 48, 48, device=DEVICE), (32, 32, 32), 2, model).shape)
phase("evaluation")
tell(model, optimizer, steps=2)
