"""Convolutions and recurrent layers of random shapes, for measuring what cuDNN takes for them on a real GPU.

SEED=1 SECONDS=120 KIND=conv python record.py random_cases.py OUT.json.gz --ops && python check_kernels.py OUT.json.gz      (KIND: conv or rnn)
"""

import os
import random
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

draw = random.Random(int(os.environ.get("SEED", "0")))
until = time.monotonic() + float(os.environ.get("SECONDS", "60"))
torch.backends.cudnn.benchmark = bool(os.environ.get("CUDNN_BENCHMARK"))
FLOAT, HALF, BF16 = torch.float32, torch.float16, torch.bfloat16
WIDTHS = (
    3,
    8,
    16,
    20,
    24,
    32,
    48,
    56,
    64,
    72,
    80,
    96,
    100,
    112,
    128,
    144,
    160,
    192,
    230,
    256,
    288,
    304,
    320,
    384,
    460,
    512,
    640,
    768,
    1024,
)
CONV = {1: (F.conv1d, F.conv_transpose1d), 2: (F.conv2d, F.conv_transpose2d), 3: (F.conv3d, F.conv_transpose3d)}


def one_convolution():
    dims = draw.choice((1, 2, 2, 2, 2, 3))
    n = draw.choice((1, 2, 4, 8, 8, 16, 24, 32, 64, 128))
    c, k = draw.choice(WIDTHS), draw.choice(WIDTHS[1:])
    if dims == 1:
        place = [draw.choice((100, 256, 375, 1000, 2000, 4096, 8191, 8192))]
    elif dims == 2:
        place = [draw.choice((4, 7, 8, 14, 16, 24, 28, 32, 33, 48, 56, 64, 96, 112, 128, 192, 256))] * 2
    else:
        place = [draw.choice((4, 8, 16))] + [draw.choice((7, 14, 28, 56, 112))] * 2
    window = [draw.choice((1, 1, 3, 3, 3, 5, 7, 2, 4))] * dims
    if dims == 3 and draw.random() < 0.5:
        window = draw.choice(([1, 3, 3], [3, 1, 1], [1, 1, 1], [3, 3, 3]))
    stride, dilation, groups = 1, 1, 1
    if draw.random() < 0.25:
        stride = 2 if max(window) != 4 else draw.choice((2, 4))
    elif draw.random() < 0.25 and max(window) > 1:
        dilation = draw.choice((2, 4, 6, 12, 64)) if dims == 1 else draw.choice((2, 6, 12))
    if draw.random() < 0.15:
        groups = draw.choice([g for g in (2, 4, 8, 32, c) if c % g == 0])
        k = k - k % groups or groups
    transposed = stride == 2 and window[0] in (2, 3, 4, 5) and groups == 1 and draw.random() < 0.5
    padding = [dilation * (w - 1) // 2 if draw.random() < 0.9 else 0 for w in window]
    if not transposed and any(p + 2 * q < dilation * (w - 1) + 1 for p, q, w in zip(place, padding, window)):
        return
    spots = n * torch.Size(place).numel()
    if spots * max(c, k) > 1 << 28 or spots * c * k // groups * torch.Size(window).numel() > 1 << 42:
        return
    dtype = draw.choice((FLOAT, FLOAT, HALF, BF16))
    last = dims > 1 and draw.random() < 0.35
    form = {2: torch.channels_last, 3: torch.channels_last_3d}.get(dims)
    x = torch.randn(n, c, *place, device="cuda").to(dtype)
    weight = torch.randn(*((c, k) if transposed else (k, c // groups)), *window, device="cuda").to(dtype)
    if last:
        x, weight = x.to(memory_format=form), weight.to(memory_format=form)
    x.requires_grad_(True), weight.requires_grad_(True)
    if transposed:
        out = CONV[dims][1](x, weight, None, stride, padding)
    else:
        out = CONV[dims][0](x, weight, None, stride, padding, dilation, groups)
    out.backward(torch.ones_like(out))


def one_recurrent():
    kind = draw.choice((nn.LSTM, nn.LSTM, nn.GRU, nn.GRU, nn.RNN))
    width = draw.choice((64, 100, 128, 200, 256, 300, 384, 512, 650, 768, 1024))
    inside = draw.choice((width, width, 64, 128, 256, 300, 512))
    layers, both = draw.choice((1, 1, 2, 2, 3, 4)), draw.random() < 0.4
    batch, length = draw.choice((1, 8, 16, 20, 32, 64, 128, 256)), draw.choice((16, 35, 50, 100, 128, 200, 256, 512))
    dropout = draw.choice((0.0, 0.0, 0.2)) if layers > 1 else 0.0
    dtype = draw.choice((FLOAT, FLOAT, HALF, BF16))
    if batch * length * max(width, inside) * layers > 1 << 28:
        return
    first = draw.random() < 0.5
    net = kind(inside, width, layers, dropout=dropout, bidirectional=both, batch_first=first).cuda().to(dtype)
    x = torch.randn(*((batch, length) if first else (length, batch)), inside, device="cuda").to(dtype)
    if draw.random() < 0.35:
        lengths = torch.tensor(sorted((draw.randint(max(1, length // 4), length) for _ in range(batch)), reverse=True))
        x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=first)
    if draw.random() < 0.2:
        net.eval()
        with torch.no_grad():
            net(x)
        return
    out = net(x)[0]
    out = out.data if isinstance(out, nn.utils.rnn.PackedSequence) else out
    out.backward(torch.ones_like(out))


one = one_recurrent if os.environ.get("KIND") == "rnn" else one_convolution
count = 0
while time.monotonic() < until and count < int(os.environ.get("COUNT", "100000")):
    try:
        one()
        count += 1
    except RuntimeError as problem:
        print(str(problem)[:100])
    if count % 50 == 0:
        torch.cuda.empty_cache()
print(count, "cases")
