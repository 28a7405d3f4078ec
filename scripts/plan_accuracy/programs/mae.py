"""A masked autoencoder: 75 % of the patches are dropped by argsort of noise and gather, the decoder puts mask tokens back, the loss is on hidden pixels."""
import torch
import torch.nn as nn

PATCH, SIZE, MASK_RATIO = 16, 224, 0.75


def patchify(imgs):
    n, h = imgs.shape[0], SIZE // PATCH
    x = imgs.reshape(n, 3, h, PATCH, h, PATCH)
    return torch.einsum("nchpwq->nhwpqc", x).reshape(n, h * h, PATCH ** 2 * 3)


def blocks(dim, depth, heads):
    options = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    return nn.ModuleList(nn.TransformerEncoderLayer(dim, heads, 4 * dim, **options) for _ in range(depth))


class MaskedAutoencoder(nn.Module):
    def __init__(self, dim=768, depth=12, heads=12, decoder_dim=512, decoder_depth=8, decoder_heads=16):
        super().__init__()
        tokens = (SIZE // PATCH) ** 2
        self.patch_embed = nn.Conv2d(3, dim, PATCH, PATCH)
        self.pos = nn.Parameter(torch.randn(1, tokens, dim) * 0.02)
        self.encoder, self.norm = blocks(dim, depth, heads), nn.LayerNorm(dim)
        self.bridge = nn.Linear(dim, decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, decoder_dim))
        self.decoder_pos = nn.Parameter(torch.randn(1, tokens, decoder_dim) * 0.02)
        self.decoder, self.decoder_norm = blocks(decoder_dim, decoder_depth, decoder_heads), nn.LayerNorm(decoder_dim)
        self.pred = nn.Linear(decoder_dim, PATCH ** 2 * 3)

    def random_masking(self, x):
        N, L, D = x.shape
        len_keep = int(L * (1 - MASK_RATIO))
        ids_shuffle = torch.argsort(torch.rand(N, L, device=x.device), dim=1)
        ids_restore = torch.argsort(ids_shuffle, dim=1)
        x_kept = torch.gather(x, 1, ids_shuffle[:, :len_keep].unsqueeze(-1).repeat(1, 1, D))
        mask = torch.ones([N, L], device=x.device)
        mask[:, :len_keep] = 0
        return x_kept, torch.gather(mask, 1, ids_restore), ids_restore

    def forward(self, imgs):
        x = self.patch_embed(imgs).flatten(2).transpose(1, 2) + self.pos
        x, mask, ids_restore = self.random_masking(x)
        for blk in self.encoder:
            x = blk(x)
        x = self.bridge(self.norm(x))
        fill = self.mask_token.repeat(x.shape[0], ids_restore.shape[1] - x.shape[1], 1)
        x = torch.cat([x, fill], dim=1)
        x = torch.gather(x, 1, ids_restore.unsqueeze(-1).repeat(1, 1, x.shape[2])) + self.decoder_pos
        for blk in self.decoder:
            x = blk(x)
        pred, target = self.pred(self.decoder_norm(x)), patchify(imgs)
        target = (target - target.mean(-1, keepdim=True)) / (target.var(-1, keepdim=True) + 1e-6) ** 0.5
        loss = ((pred - target) ** 2).mean(-1)
        return (loss * mask).sum() / mask.sum()


mae = MaskedAutoencoder().cuda()
params = [{"params": [p for p in mae.parameters() if p.ndim > 1], "weight_decay": 0.05},
          {"params": [p for p in mae.parameters() if p.ndim <= 1], "weight_decay": 0.0}]
opt = torch.optim.AdamW(params, lr=1.5e-4, betas=(0.9, 0.95))
for step in range(3):
    loss = mae(torch.rand(128, 3, SIZE, SIZE, device="cuda"))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step}: {loss.item():.4f}")
