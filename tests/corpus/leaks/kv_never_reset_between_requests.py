# leak
import torch
class Attention(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.kv = torch.nn.Linear(d, d), torch.nn.Linear(d, 2 * d)
        self.past = []
    def forward(self, x):
        self.past.append(self.kv(x))
        k, v = self.past[-1].chunk(2, -1)
        return x + torch.softmax(self.q(x) @ k.transpose(0, 1), -1) @ v
model = torch.nn.Sequential(torch.nn.Linear(512, 512), Attention(512), Attention(512), torch.nn.Linear(512, 200)).cuda()
def serve(request):
    with torch.no_grad():
        return model(request).argmax(-1).tolist()  # <- kept
for t in range(48):
    request = torch.randn(64, 512, device="cuda")
    serve(request)
