# clean
import torch
layer = torch.nn.TransformerEncoderLayer(128, 4, 256, batch_first=True).cuda()
opt = torch.optim.SGD(layer.parameters(), 0.1)
for i in range(40):
    x = torch.randn(4, 16 + 8 * i, 128, device="cuda")
    loss = layer(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
