"""Contrastive learning with a momentum encoder and a queue of 65,536 negatives; two augmented views made on the GPU."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_bn(cin, cout, k=3, s=1):
    return nn.Sequential(nn.Conv2d(cin, cout, k, s, k // 2, bias=False), nn.BatchNorm2d(cout))


class Residual(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.a, self.b = conv_bn(cin, cout, 3, stride), conv_bn(cout, cout)
        self.proj = conv_bn(cin, cout, 1, stride) if (cin, stride) != (cout, 1) else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(F.relu(self.a(x), inplace=True)) + self.proj(x), inplace=True)


def encoder(dim=128):
    layers, c = [conv_bn(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)], 64
    for width in (64, 128, 256, 512):
        layers += [Residual(c, width, 1 if width == 64 else 2), Residual(width, width, 1)]
        c = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, dim))


class MoCo(nn.Module):
    def __init__(self, dim=128, K=65536, m=0.999, T=0.07):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = encoder(dim), encoder(dim)
        self.encoder_k.load_state_dict(self.encoder_q.state_dict())
        for param_k in self.encoder_k.parameters():
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.ptr = 0

    @torch.no_grad()
    def momentum_update(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.m + q.data * (1.0 - self.m)

    @torch.no_grad()
    def enqueue(self, keys):
        n = keys.shape[0]
        self.queue[:, self.ptr:self.ptr + n] = keys.T
        self.ptr = (self.ptr + n) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self.momentum_update()
            shuffle = torch.randperm(im_k.shape[0], device=im_k.device)
            k = F.normalize(self.encoder_k(im_k[shuffle]), dim=1)[torch.argsort(shuffle)]
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        labels = torch.zeros(logits.shape[0], dtype=torch.long, device=logits.device)
        self.enqueue(k)
        return logits, labels


def augment(x):
    x = torch.flip(x, dims=[3]) if torch.rand(1).item() < 0.5 else x
    brightness = 1 + 0.4 * (torch.rand(x.size(0), 1, 1, 1, device=x.device) - 0.5)
    return (x * brightness + 0.1 * torch.randn_like(x)).clamp(0, 1)


model = MoCo().cuda()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.03, momentum=0.9, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss().cuda()
for i in range(3):
    images = torch.rand(256, 3, 160, 160, device="cuda")
    output, target = model(augment(images), augment(images))
    loss = criterion(output, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"[{i}] loss {loss.item():.4f} queue at {model.ptr}")
