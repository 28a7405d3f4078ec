"""Single operations of shapes that the kernel models were not fitted to, for checking them on a real GPU.

python record.py kernel_cases.py OUT.json.gz --ops && python check_kernels.py OUT.json.gz
"""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
HALF, FLOAT, BF16 = torch.float16, torch.float32, torch.bfloat16


def tensor(*size, dtype=FLOAT, grad=True, last=False):
    t = torch.randn(*size, device="cuda").to(dtype)
    return (t.to(memory_format=torch.channels_last) if last else t).requires_grad_(grad)


def both(out):
    """Forward is done; backward with a gradient of the result's layout."""
    out = out[0] if isinstance(out, tuple) else out
    if out.requires_grad:
        out.backward(torch.ones_like(out))


def convolutions():
    shapes = [
        (16, 48, 40, 40, 96, 3, 1, 1, 1),
        (16, 48, 40, 40, 96, 3, 2, 1, 1),
        (4, 192, 64, 64, 192, 1, 1, 0, 1),
        (4, 320, 32, 32, 640, 3, 1, 1, 1),
        (2, 640, 64, 64, 320, 3, 1, 1, 1),
        (16, 3, 128, 128, 32, 3, 2, 1, 1),
        (8, 3, 512, 512, 64, 3, 1, 1, 1),
        (12, 80, 33, 33, 160, 5, 1, 2, 1),
        (64, 256, 20, 20, 256, 3, 1, 1, 4),
        (24, 128, 48, 48, 24, 1, 1, 0, 1),
        (8, 32, 200, 200, 32, 3, 1, 1, 1),
        (64, 64, 32, 32, 64, 3, 1, 1, 1),
        (128, 16, 32, 32, 16, 3, 1, 1, 1),
        (128, 1, 28, 28, 32, 3, 1, 1, 1),
        (6, 512, 64, 64, 512, 3, 1, 1, 1),
        (16, 96, 56, 56, 96, 7, 1, 3, 96),
    ]
    for n, c, h, w, k, r, stride, pad, groups in shapes:
        for dtype in (FLOAT, HALF, BF16):
            for last in (False, True):
                both(
                    F.conv2d(
                        tensor(n, c, h, w, dtype=dtype, last=last),
                        tensor(k, c // groups, r, r, dtype=dtype, last=last),
                        tensor(k, dtype=dtype),
                        stride,
                        pad,
                        1,
                        groups,
                    )
                )
    both(F.conv_transpose2d(tensor(4, 96, 48, 48), tensor(96, 48, 4, 4), None, 2, 1))
    both(F.conv1d(tensor(16, 80, 3000, dtype=HALF), tensor(384, 80, 3, dtype=HALF), None, 1, 1))
    both(F.conv3d(tensor(2, 16, 24, 64, 64), tensor(32, 16, 3, 3, 3), None, 1, 1))


def reductions():
    for size, dims in (
        ((3000, 777), 0),
        ((12345, 64), 0),
        ((64, 33, 512), (0, 1)),
        ((7, 100000), 1),
        ((128, 64, 50, 50), (0, 2, 3)),
        ((5, 6, 7000), (0, 2)),
        ((1000003,), 0),
        ((300000, 8), 0),
    ):
        for dtype in (FLOAT, HALF, torch.float64, torch.int64):
            x = (torch.rand(size, device="cuda") * 10).to(dtype)
            x.sum(dims), x.amax(dims), x.any(dims if isinstance(dims, int) else dims[0])
            if dtype.is_floating_point:
                x.mean(dims), x.std(dims), torch.linalg.vector_norm(x, dim=dims), x.logsumexp(dims)
            x.max(), x.argmax(), x.max(0), x.t().sum(0) if x.dim() == 2 else None
    big = torch.empty(300000, 2048, device="cuda")
    big.sum(0), big.sum()
    last = torch.randn(32, 96, 60, 60, device="cuda").to(memory_format=torch.channels_last)
    last.sum((0, 2, 3)), last.mean((2, 3))


def sorting_and_indexing():
    for size, dim in (
        ((50000,), 0),
        ((200, 20000), 1),
        ((20, 50000), 1),
        ((3, 2000000), 1),
        ((5000, 300), 0),
        ((64, 1000), 1),
    ):
        x = torch.randn(size, device="cuda")
        (
            x.sort(dim),
            x.half().sort(dim),
            x.topk(min(40, size[dim]), dim),
            x.argsort(dim),
            x.cumsum(dim),
            x.long().unique(return_inverse=True),
            (x > 1).nonzero(),
            x[x > 0.5],
        )
    for rows, width, count, dtype in (
        (1000, 300, 20000, FLOAT),
        (64, 1024, 40000, HALF),
        (32000, 4096, 8192, BF16),
        (5, 16, 100000, FLOAT),
    ):
        both(F.embedding(torch.randint(rows, (count,), device="cuda"), tensor(rows, width, dtype=dtype)))
        both(tensor(rows, width, dtype=dtype)[torch.randint(rows, (count,), device="cuda")])
    both(tensor(300, 400, 50)[torch.randint(300, (9000,), device="cuda"), torch.randint(400, (9000,), device="cuda")])
    (
        torch.randperm(100000, device="cuda"),
        torch.randperm(1000, device="cuda"),
        torch.multinomial(torch.rand(50, 5000, device="cuda"), 20),
        torch.multinomial(torch.rand(5000, device="cuda"), 100, True),
    )


def norms_and_losses():
    for rows, width, dtype in ((100000, 256, FLOAT), (200000, 64, HALF), (70000, 4096, BF16), (333, 5000, FLOAT)):
        both(
            F.layer_norm(
                tensor(rows, width, dtype=dtype), (width,), tensor(width, dtype=dtype), tensor(width, dtype=dtype)
            )
        )
        both(F.rms_norm(tensor(rows, width, dtype=dtype), (width,), tensor(width, dtype=dtype)))
    for last in (False, True):
        for dtype in (FLOAT, HALF):
            x = tensor(24, 96, 50, 50, dtype=dtype, last=last)
            both(F.group_norm(x, 12, tensor(96, dtype=dtype), tensor(96, dtype=dtype)))
            both(
                F.batch_norm(
                    x, torch.zeros(96, device="cuda"), torch.ones(96, device="cuda"), tensor(96), tensor(96), True
                )
            )
    both(F.batch_norm(tensor(5000, 300), None, None, tensor(300), tensor(300), True))
    x, y = tensor(512, 3000), torch.rand(512, 3000, device="cuda")
    for loss in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits, F.l1_loss):
        both(loss(x, y))
    (
        both(F.binary_cross_entropy(x.sigmoid(), y)),
        both(x.t().softmax(0)),
        both(F.cross_entropy(x, torch.zeros(512, dtype=torch.long, device="cuda"), label_smoothing=0.1)),
    )
    (
        x.detach().to("cpu", torch.float64),
        x.detach().t().to("cpu"),
        x.detach().to("cpu", HALF, non_blocking=True),
        torch.ones(300, 200).t().to("cuda"),
        torch.ones(300, 200).to("cuda", HALF, non_blocking=True),
    )


def attention_and_recurrent():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for b, h, kv, t, s, d, causal, p in (
        (3, 16, 4, 700, 700, 128, True, 0.0),
        (2, 20, 20, 77, 77, 64, False, 0.1),
        (1, 8, 8, 4096, 4096, 40, False, 0.0),
        (16, 6, 6, 300, 50, 96, False, 0.0),
        (64, 12, 12, 100, 100, 32, True, 0.0),
        (8, 32, 8, 128, 128, 192, True, 0.0),
    ):
        for dtype in (FLOAT, HALF):
            for kind in (None, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH):
                q, k, v = (
                    tensor(b, h, t, d, dtype=dtype),
                    tensor(b, kv, s, d, dtype=dtype),
                    tensor(b, kv, s, d, dtype=dtype),
                )
                try:
                    if kind is None:
                        both(F.scaled_dot_product_attention(q, k, v, None, p, causal, enable_gqa=h != kv))
                    else:
                        with sdpa_kernel(kind):
                            both(F.scaled_dot_product_attention(q, k, v, None, p, causal, enable_gqa=h != kv))
                except RuntimeError:
                    pass  # a kernel that does not take these inputs
    for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        for width, hidden, layers, two, batch, length, p, dtype in (
            (300, 200, 1, False, 20, 40, 0.0, FLOAT),
            (128, 384, 3, False, 48, 60, 0.3, FLOAT),
            (256, 256, 2, True, 32, 200, 0.1, FLOAT),
            (512, 768, 2, False, 24, 90, 0.0, HALF),
        ):
            both(
                kind(width, hidden, layers, dropout=p, bidirectional=two)
                .cuda()
                .to(dtype)(tensor(length, batch, width, dtype=dtype))
            )


for group in (convolutions, reductions, sorting_and_indexing, norms_and_losses, attention_and_recurrent):
    try:
        group()
    except Exception as problem:  # the other groups are still worth having
        print(group.__name__, problem)
    torch.cuda.empty_cache()
