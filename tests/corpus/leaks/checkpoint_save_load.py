# clean
import io, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
opt = torch.optim.Adam(model.parameters())
for i in range(12):
    loss = model(torch.randn(128, 512, device="cuda")).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if i % 4 == 3:
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        model.load_state_dict(torch.load(file))
