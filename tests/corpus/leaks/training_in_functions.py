# clean
import torch
def batch(): return torch.randn(256, 512, device="cuda"), torch.zeros(256, dtype=torch.long, device="cuda")
def step(model, opt, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
def main():
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return sum(step(model, opt, *batch()) for _ in range(25))
main()
