"""torch.nn.Transformer for translation: sinusoidal positions, padding masks, label smoothing, the inverse square root schedule, then greedy decoding."""
import math

import torch
import torch.nn as nn
from torch import Tensor

SRC_VOCAB, TGT_VOCAB, PAD_IDX, BOS_IDX = 20000, 20000, 1, 2
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size: int, dropout: float, maxlen: int = 1000):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2], pos_embedding[:, 1::2] = torch.sin(pos * den), torch.cos(pos * den)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding.unsqueeze(-2))

    def forward(self, token_embedding: Tensor):
        return self.dropout(token_embedding + self.pos_embedding[:token_embedding.size(0), :])


class Seq2SeqTransformer(nn.Module):
    def __init__(self, layers=6, emb_size=768, nhead=12, ff=3072, dropout=0.1):
        super().__init__()
        self.transformer = nn.Transformer(d_model=emb_size, nhead=nhead, num_encoder_layers=layers, num_decoder_layers=layers,
                                          dim_feedforward=ff, dropout=dropout)
        self.generator = nn.Linear(emb_size, TGT_VOCAB)
        self.src_tok, self.tgt_tok = nn.Embedding(SRC_VOCAB, emb_size), nn.Embedding(TGT_VOCAB, emb_size)
        self.positional_encoding, self.scale = PositionalEncoding(emb_size, dropout), math.sqrt(emb_size)

    def forward(self, src, trg, tgt_mask, src_padding_mask, tgt_padding_mask):
        src_emb = self.positional_encoding(self.src_tok(src) * self.scale)
        tgt_emb = self.positional_encoding(self.tgt_tok(trg) * self.scale)
        outs = self.transformer(src_emb, tgt_emb, None, tgt_mask, None, src_padding_mask, tgt_padding_mask, src_padding_mask)
        return self.generator(outs)


def batch(n=64, src_len=160, tgt_len=140):
    src, tgt = torch.randint(4, SRC_VOCAB, (src_len, n)), torch.randint(4, TGT_VOCAB, (tgt_len, n))
    for i in range(n):
        src[src_len - i % 40:, i] = PAD_IDX
        tgt[tgt_len - i % 30:, i] = PAD_IDX
    return src.to(DEVICE), tgt.to(DEVICE)


def future_mask(size):
    return torch.triu(torch.ones((size, size), device=DEVICE, dtype=torch.bool), diagonal=1)


model = Seq2SeqTransformer()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
model = model.to(DEVICE)
loss_fn = nn.CrossEntropyLoss(ignore_index=PAD_IDX, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 768 ** -0.5 * min((s + 1) ** -0.5, (s + 1) * 4000 ** -1.5))
for step in range(3):
    src, tgt = batch()
    logits = model(src, tgt[:-1], future_mask(tgt.size(0) - 1), (src == PAD_IDX).transpose(0, 1), (tgt[:-1] == PAD_IDX).transpose(0, 1))
    optimizer.zero_grad()
    loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:].reshape(-1))
    loss.backward()
    optimizer.step()
    schedule.step()
    print(f"step {step} loss {loss.item():.3f}")
model.eval()
with torch.no_grad():
    src, _ = batch()
    memory = model.transformer.encoder(model.positional_encoding(model.src_tok(src) * model.scale))
    ys = torch.full((1, src.size(1)), BOS_IDX, device=DEVICE)
    for _ in range(16):
        out = model.transformer.decoder(model.positional_encoding(model.tgt_tok(ys) * model.scale), memory, future_mask(ys.size(0)))
        ys = torch.cat([ys, model.generator(out[-1]).argmax(dim=-1, keepdim=True).t()], dim=0)
print("decoded", tuple(ys.shape))
