# clean
import torch
vgg = torch.nn.Sequential(*[torch.nn.Conv2d(3 if i == 0 else 16, 16, 3, padding=1) for i in range(6)]).cuda()
feats = []
for layer in vgg: layer.register_forward_hook(lambda m, i, o: feats.append(o))
image = torch.randn(1, 3, 128, 128, device="cuda", requires_grad=True)
opt = torch.optim.Adam([image])
for i in range(15):
    feats.clear()
    vgg(image)
    loss = sum(f.pow(2).mean() for f in feats)
    opt.zero_grad(); loss.backward(); opt.step()
