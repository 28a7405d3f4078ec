# clean
import random, torch
random.seed(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda().eval()
static = {}
def run(n):
    bucket = -(-n // 64) * 64
    if bucket not in static:
        static[bucket] = torch.zeros(bucket, 512, device="cuda")
    buf = static[bucket]
    buf[:n].normal_()
    with torch.no_grad():
        return model(buf)[:n].sum().item()
for bucket in range(64, 1025, 64):
    run(bucket)
for request in range(60):
    run(random.randint(1, 1024))
