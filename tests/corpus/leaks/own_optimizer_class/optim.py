import torch
class Lion:
    def __init__(self, params, lr):
        self.params, self.lr, self.m = list(params), lr, {}
    def zero_grad(self):
        for p in self.params:
            p.grad = None
    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.params):
            if i not in self.m:
                self.m[i] = torch.zeros_like(p)
            update = (0.9 * self.m[i] + 0.1 * p.grad).sign()
            p -= self.lr * update
            self.m[i] = 0.99 * self.m[i] + 0.01 * p.grad
