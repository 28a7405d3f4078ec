# clean
import torch
models = []
for fold in range(8):
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    opt = torch.optim.Adam(model.parameters())
    for step in range(5):
        loss = model(torch.randn(128, 512, device="cuda")).logsumexp(-1).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    models.append(model.eval())
