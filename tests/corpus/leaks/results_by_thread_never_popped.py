# leak
import threading, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
results = {}
def handle(number, x):
    with torch.no_grad():
        results[number] = model(x)  # <- kept
for i in range(60):
    x = torch.randn(128, 512, device="cuda")
    t = threading.Thread(target=handle, args=(i, x))
    t.start(); t.join()
