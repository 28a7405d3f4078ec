"""A family of vision transformers, tiny to large, each built, trained for two steps and dropped before the next."""
import gc

import torch
import torch.nn as nn
import torch.nn.functional as F

FAMILY = {
    "tiny": dict(dim=192, depth=12, heads=3, batch=128),
    "small": dict(dim=384, depth=12, heads=6, batch=96),
    "base": dict(dim=768, depth=12, heads=12, batch=64),
    "large": dict(dim=1024, depth=24, heads=16, batch=32),
}


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        mask = x.new_empty(x.shape[0], 1, 1).bernoulli_(1 - self.p)
        return x * mask / (1 - self.p)


class Layer(nn.Module):
    def __init__(self, dim, heads, drop_path):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim, eps=1e-6)
        self.qkv, self.proj = nn.Linear(dim, dim * 3), nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, dim * 4), nn.Linear(dim * 4, dim)
        self.gamma1, self.gamma2 = nn.Parameter(1e-4 * torch.ones(dim)), nn.Parameter(1e-4 * torch.ones(dim))
        self.drop_path = DropPath(drop_path)

    def attend(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * (C // self.heads) ** -0.5) @ k.transpose(-2, -1)
        return self.proj((attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C))

    def forward(self, x):
        x = x + self.drop_path(self.gamma1 * self.attend(self.norm1(x)))
        return x + self.drop_path(self.gamma2 * self.fc2(F.gelu(self.fc1(self.norm2(x)))))


class ViT(nn.Module):
    def __init__(self, dim, depth, heads, classes=1000, patch=16, size=224):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, patch, patch)
        self.cls_token, self.dist_token = nn.Parameter(torch.zeros(1, 1, dim)), nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 2, dim))
        self.blocks = nn.ModuleList(Layer(dim, heads, 0.1 * i / (depth - 1)) for i in range(depth))
        self.norm, self.head, self.head_dist = nn.LayerNorm(dim, eps=1e-6), nn.Linear(dim, classes), nn.Linear(dim, classes)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(len(x), -1, -1), self.dist_token.expand(len(x), -1, -1), x), dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x[:, 0]), self.head_dist(x[:, 1])


for name, size in FAMILY.items():
    batch = size.pop("batch")
    net = ViT(**size).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.05)
    for step in range(2):
        images, labels = torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(1000, (batch,), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            out, out_dist = net(images)
            loss = 0.5 * F.cross_entropy(out, labels) + 0.5 * F.cross_entropy(out_dist, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(f"{name} step {step} loss {loss.item():.3f}")
    del net, opt, images, labels, out, out_dist, loss
    gc.collect()
    torch.cuda.empty_cache()
