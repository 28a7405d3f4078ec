# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
opt = torch.optim.Adam(model.parameters())
def evaluate():
    preds = []
    with torch.no_grad():
        for i in range(8):
            preds.append(model(torch.randn(1024, 256, device="cuda")))
    return torch.cat(preds).mean().item()
for epoch in range(4):
    for i in range(6):
        loss = model(torch.randn(256, 256, device="cuda")).pow(2).mean()
        opt.zero_grad(); loss.backward(); opt.step()
    evaluate()
