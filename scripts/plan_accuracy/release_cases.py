"""What differs between releases of PyTorch, case by case: the peak above what was there before, and what stays, by PyTorch's own counters.

python release_cases.py > OUT.json                                        on a GPU
faultline plan --gpu H200 --no-try -- python release_cases.py > OUT.json   the same as planned (FAULTLINE_PLAN_RELEASE: as another release does it)
"""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F

HALF, FLOAT = torch.float16, torch.float32


def attention(dtype=HALF, b=2, h=8, t=512, s=None, d=64, mask=None, kinds=None, priority=False, **options):
    def run():
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = (torch.randn(b, h, n, d, device="cuda", dtype=dtype, requires_grad=True) for n in (t, s or t, s or t))
        given = mask() if mask else None
        yield
        if kinds:
            with sdpa_kernel(
                [getattr(SDPBackend, kind) for kind in kinds], **({"set_priority": True} if priority else {})
            ):
                out = F.scaled_dot_product_attention(q, k, v, attn_mask=given, **options)
        else:
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=given, **options)
        yield
        out.backward(torch.ones_like(out))

    return run


def bools(*size):
    return lambda: torch.ones(size, dtype=torch.bool, device="cuda")


def numbers(*size, dtype=FLOAT, cut=0):
    return lambda: torch.zeros((*size[:-1], size[-1] + cut), dtype=dtype, device="cuda")[..., : size[-1]]


def layer(module, *size, dtype=FLOAT):
    def run():
        net, x = module().cuda(), torch.randn(size, device="cuda", dtype=dtype, requires_grad=True)
        yield
        out = net(x)
        yield
        out.backward(torch.ones_like(out))

    return run


def call(function, *sizes, dtype=FLOAT):
    def run():
        given = [torch.zeros(size, device="cuda", dtype=dtype) for size in sizes]
        yield
        kept = function(*given)
        yield
        del kept

    return run


CASES = {
    "boolean mask, float": attention(FLOAT, mask=bools(2, 1, 512, 512)),
    "boolean mask, half": attention(mask=bools(2, 1, 512, 512)),
    "mask of 500": attention(FLOAT, t=500, mask=numbers(2, 1, 500, 500)),
    "mask of 504": attention(FLOAT, t=504, mask=numbers(2, 1, 504, 504)),
    "mask of 504 in rows of 505": attention(FLOAT, t=504, mask=numbers(2, 8, 504, 504, cut=1)),
    "mask of 100 by 2": attention(FLOAT, t=100, mask=numbers(100, 100)),
    "half": attention(),
    "half, dropout": attention(dropout_p=0.1),
    "half, dropout of an eighth": attention(dropout_p=0.125),
    "heads of 256": attention(d=256),
    "heads of 136": attention(d=136),
    **{f"flash, heads of {d}": attention(d=d, kinds=["FLASH_ATTENTION"]) for d in (64, 136, 160, 200, 208, 256)},
    "flash, dropout": attention(kinds=["FLASH_ATTENTION"], dropout_p=0.1),
    "flash, one query": attention(t=1, s=8192, kinds=["FLASH_ATTENTION"]),
    "efficient, heads of 256, masked": attention(
        d=256, t=1024, mask=numbers(1024, 1024, dtype=HALF), kinds=["EFFICIENT_ATTENTION"]
    ),
    "math, half, boolean mask": attention(kinds=["MATH"], mask=bools(512, 512)),
    "efficient first": attention(kinds=["EFFICIENT_ATTENTION", "FLASH_ATTENTION"], priority=True),
    "batch norm of rows": layer(lambda: nn.BatchNorm1d(256), 4096, 256),
    "batch norm of images": layer(lambda: nn.BatchNorm2d(64), 16, 64, 56, 56),
    "batch norm, double": layer(lambda: nn.BatchNorm2d(64).double(), 16, 64, 56, 56, dtype=torch.float64),
    "batch norm, half weights": layer(lambda: nn.BatchNorm2d(64).half(), 16, 64, 56, 56, dtype=HALF),
    "batch norm, half": layer(lambda: nn.BatchNorm2d(64), 16, 64, 56, 56, dtype=HALF),
    "group norm, half": layer(lambda: nn.GroupNorm(8, 64).half(), 16, 64, 56, 56, dtype=HALF),
    "layer norm of 131072 rows": layer(lambda: nn.LayerNorm(1024), 131072, 1024),
    "linear": layer(lambda: nn.Linear(512, 512), 256, 512),
    "linear, half": layer(lambda: nn.Linear(512, 512).half(), 256, 512, dtype=HALF),
    "convolution 3d, half": layer(lambda: nn.Conv3d(16, 16, 3, padding=1).half(), 2, 16, 8, 64, 64, dtype=HALF),
    "count of truth values": call(torch.count_nonzero, (1 << 20,), dtype=torch.bool),
    "count of numbers": call(torch.count_nonzero, (1 << 20,)),
    **{
        f"binary cross entropy with logits, {how}": call(
            lambda x, y, how=how: F.binary_cross_entropy_with_logits(x, y, reduction=how), (1 << 20,), (1 << 20,)
        )
        for how in ("mean", "none")
    },
    "binary cross entropy with logits, weighted": call(
        lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w), (4096, 256), (4096, 256), (256,)
    ),
    "largest of 4000 rows": call(lambda x: torch.topk(x, 5), (4000, 1000)),
    "variance": call(lambda x: torch.var(x, -1), (64, 65536)),
    "sum of halves": call(lambda x: x.sum(-1), (64, 1 << 18), dtype=HALF),
    "norms of 1000": call(lambda *given: torch._foreach_norm(list(given)), *[(1000,)] * 1000),
}


def positions():
    table = nn.Embedding(512, 768).cuda()
    index = torch.zeros(64, 1024, dtype=torch.int64, device="cuda")
    yield
    out = table(index)
    yield
    out.backward(torch.ones_like(out))


CASES["positions"] = positions


def measured(case) -> list:
    """[peak, what stays] of each part."""
    torch.cuda.empty_cache()
    found, steps = [], case()
    next(steps)
    while True:
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        over = next(steps, "over") == "over"
        found.append([torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before])
        if over:
            return found


def main():
    nn.Linear(64, 64).cuda()(
        torch.randn(64, 64, device="cuda")
    ).sum().backward()  # the libraries' own workspaces are there
    nn.Linear(64, 64).half().cuda()(torch.randn(64, 64, device="cuda", dtype=HALF)).sum().backward()
    results = {}
    for name, case in CASES.items():
        try:
            results[name] = measured(case)
        except Exception as problem:
            results[name] = f"{type(problem).__name__}: {str(problem)[:200]}"
    print(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "cases": results}, indent=1))


main()
