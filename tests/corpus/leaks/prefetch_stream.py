# clean
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), 0.1)
side = torch.cuda.Stream()
class Prefetcher:
    def __init__(self, n):
        self.n = n
        self.load()
    def load(self):
        self.n -= 1
        with torch.cuda.stream(side):
            self.next = torch.randn(256, 1024).cuda(non_blocking=True) if self.n >= 0 else None
    def __iter__(self):
        while self.next is not None:
            torch.cuda.current_stream().wait_stream(side)
            batch = self.next
            batch.record_stream(torch.cuda.current_stream())
            self.load()
            yield batch
for x in Prefetcher(40):
    loss = model(x).logsumexp(-1).mean()
    opt.zero_grad(); loss.backward(); opt.step()
