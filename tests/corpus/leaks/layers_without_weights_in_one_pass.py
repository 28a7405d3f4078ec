# clean
import torch
x = torch.randn(16, 64, 64, 64, device="cuda", requires_grad=True)
features = []
for level in range(12):
    x = torch.nn.functional.avg_pool2d(x, 3, 1, 1)
    x = torch.relu(x - 0.01)
    features.append(x)
loss = sum(f.mean() for f in features)
loss.backward()
