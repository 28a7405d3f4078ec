# clean
import torch
params = []
for i in range(48):
    w = torch.randn(512, 512, device="cuda")
    w /= 512 ** 0.5
    params.append(w.requires_grad_())
    params.append(torch.zeros(512, device="cuda", requires_grad=True))
