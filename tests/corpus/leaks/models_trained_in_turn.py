# clean
import torch
done = []
for fold in range(3):
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 4)).cuda()
    opt = torch.optim.Adam(model.parameters())
    for i in range(8):
        loss = model(torch.randn(128, 512, device="cuda")).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    done.append(model)
