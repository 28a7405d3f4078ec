# leak
import queue, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
todo = queue.Queue()
def serve():
    with torch.no_grad():
        for i in range(40):
            request = torch.randn(128, 512, device="cuda")
            todo.put(model(request))  # <- kept
serve()
