"""What single operations take beside their results, on a real GPU: forward and backward, block by block.

python sweep.py OUT.json.gz
"""

import gzip
import json
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

cases = {}


def case(name):
    def keep(make):
        cases[name] = make
        return make

    return keep


def tensor(*shape, dtype=torch.float32, grad=False, channels_last=False):
    t = torch.randn(*shape, device="cuda").to(dtype)
    if channels_last:
        t = t.to(memory_format=torch.channels_last)
    return t.requires_grad_(grad)


def add_convolutions():
    shapes = [
        (32, 3, 224, 224, 64, 7, 2, 3, 1),
        (32, 64, 56, 56, 64, 1, 1, 0, 1),
        (32, 64, 56, 56, 64, 3, 1, 1, 1),
        (32, 64, 56, 56, 256, 1, 1, 0, 1),
        (32, 128, 56, 56, 128, 3, 2, 1, 1),
        (32, 256, 56, 56, 512, 1, 2, 0, 1),
        (32, 512, 7, 7, 512, 3, 1, 1, 1),
        (32, 1024, 14, 14, 256, 1, 1, 0, 1),
        (8, 64, 256, 256, 64, 3, 1, 1, 1),
        (8, 128, 256, 256, 64, 3, 1, 1, 1),
        (8, 256, 64, 64, 256, 3, 1, 1, 1),
        (8, 512, 32, 32, 512, 3, 1, 1, 1),
        (64, 3, 224, 224, 768, 16, 16, 0, 1),
        (16, 32, 112, 112, 32, 3, 1, 1, 32),
        (8, 64, 256, 256, 3, 1, 1, 0, 1),
        (128, 96, 28, 28, 192, 5, 1, 2, 1),
    ]
    for n, c, h, w, k, r, stride, pad, groups in shapes:
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for last in (False, True):

                def make(n=n, c=c, h=h, w=w, k=k, r=r, stride=stride, pad=pad, groups=groups, dtype=dtype, last=last):
                    x = tensor(n, c, h, w, dtype=dtype, grad=True, channels_last=last)
                    weight = tensor(k, c // groups, r, r, dtype=dtype, grad=True, channels_last=last)
                    return lambda: F.conv2d(x, weight, None, stride, pad, 1, groups)

                cases[
                    f"conv n{n} c{c} {h}x{w} k{k} r{r} s{stride} p{pad} g{groups} {str(dtype)[6:]} {'nhwc' if last else 'nchw'}"
                ] = make
    for dtype in (torch.float32, torch.float16):
        cases[f"convtranspose 8x512x32 -> 256 {dtype}"] = lambda dtype=dtype: (
            lambda x, w: lambda: F.conv_transpose2d(x, w, None, 2)
        )(tensor(8, 512, 32, 32, dtype=dtype, grad=True), tensor(512, 256, 2, 2, dtype=dtype, grad=True))
        cases[f"conv1d 32x256x2000 k3 {dtype}"] = lambda dtype=dtype: (lambda x, w: lambda: F.conv1d(x, w, None, 1, 1))(
            tensor(32, 256, 2000, dtype=dtype, grad=True), tensor(256, 256, 3, dtype=dtype, grad=True)
        )
        cases[f"conv3d 4x32x16x56x56 k3 {dtype}"] = lambda dtype=dtype: (
            lambda x, w: lambda: F.conv3d(x, w, None, 1, 1)
        )(tensor(4, 32, 16, 56, 56, dtype=dtype, grad=True), tensor(32, 32, 3, 3, 3, dtype=dtype, grad=True))


def add_recurrent():
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        for width, layers, both, batch, length, dropout, dtype in (
            (1024, 2, False, 64, 128, 0.2, torch.float32),
            (1024, 2, False, 64, 128, 0.0, torch.float32),
            (512, 1, False, 64, 128, 0.0, torch.float32),
            (512, 1, False, 32, 64, 0.0, torch.float32),
            (512, 1, True, 64, 128, 0.0, torch.float32),
            (512, 3, True, 16, 100, 0.1, torch.float16),
            (256, 2, False, 128, 50, 0.0, torch.float16),
        ):

            def make(
                kind=kind,
                width=width,
                layers=layers,
                both=both,
                batch=batch,
                length=length,
                dropout=dropout,
                dtype=dtype,
            ):
                net = kind(width, width, layers, dropout=dropout, bidirectional=both).cuda().to(dtype)
                x = tensor(length, batch, width, dtype=dtype, grad=True)
                return lambda: net(x)[0]

            cases[
                f"{kind.__name__} w{width} l{layers} {'bi' if both else 'uni'} b{batch} t{length} d{dropout} {str(dtype)[6:]}"
            ] = make


def add_attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    kinds = {
        "default": None,
        "flash": SDPBackend.FLASH_ATTENTION,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
        "math": SDPBackend.MATH,
    }
    for name, kind in kinds.items():
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            for b, h, kv, t, s, d, causal, mask, p in (
                (4, 12, 12, 1024, 1024, 64, True, None, 0.0),
                (4, 12, 12, 1024, 1024, 64, True, None, 0.1),
                (4, 12, 12, 1000, 1000, 64, False, None, 0.0),
                (2, 8, 8, 512, 512, 128, True, None, 0.0),
                (2, 8, 8, 512, 512, 80, True, None, 0.0),
                (4, 12, 12, 256, 256, 64, False, "bool", 0.1),
                (4, 12, 12, 257, 257, 64, False, "float", 0.0),
                (2, 16, 16, 1, 300, 64, False, None, 0.0),
                (2, 4, 4, 512, 512, 256, True, None, 0.0),
            ):

                def make(kind=kind, dtype=dtype, b=b, h=h, kv=kv, t=t, s=s, d=d, causal=causal, mask=mask, p=p):
                    q, k, v = (tensor(b, n, h, d, dtype=dtype).transpose(1, 2).requires_grad_(True) for n in (t, s, s))
                    m = None
                    if mask == "bool":
                        m = torch.ones(b, 1, t, s, dtype=torch.bool, device="cuda")
                    elif mask == "float":
                        m = torch.zeros(b, h, t, s, dtype=dtype, device="cuda")

                    def go():
                        if kind is None:
                            return F.scaled_dot_product_attention(q, k, v, m, p, causal)
                        with sdpa_kernel(kind):
                            return F.scaled_dot_product_attention(q, k, v, m, p, causal)

                    return go

                cases[f"sdpa {name} b{b} h{h} t{t} s{s} d{d} causal{causal} mask{mask} p{p} {str(dtype)[6:]}"] = make


def add_others():
    one = {
        "sum all": lambda x: x.sum(),
        "sum 0": lambda x: x.sum(0),
        "sum 1": lambda x: x.sum(1),
        "mean -1": lambda x: x.mean(-1),
        "var": lambda x: x.var(),
        "norm": lambda x: x.norm(),
        "max all": lambda x: x.max(),
        "max 1": lambda x: x.max(1).values,
        "argmax 1": lambda x: x.argmax(1),
        "argmax": lambda x: x.argmax(),
        "amax 0": lambda x: x.amax(0),
        "std 0": lambda x: x.std(0),
        "logsumexp": lambda x: x.logsumexp(1),
        "softmax": lambda x: x.softmax(-1),
        "log_softmax": lambda x: x.log_softmax(-1),
        "cumsum": lambda x: x.cumsum(1),
        "cumsum 0": lambda x: x.cumsum(0),
        "cumprod": lambda x: x.cumprod(1),
        "sort": lambda x: x.sort(1).values,
        "sort 0": lambda x: x.sort(0).values,
        "sort flat": lambda x: x.flatten().sort().values,
        "argsort": lambda x: x.argsort(1),
        "topk": lambda x: x.topk(50, 1).values,
        "kthvalue": lambda x: x.kthvalue(5, 1).values,
        "median": lambda x: x.median(1).values,
        "nonzero": lambda x: (x > 1).nonzero(),
        "masked_select": lambda x: x[x > 1],
        "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
        "where": lambda x: torch.where(x > 0, x, 0.0),
        "index rows": lambda x: x[torch.arange(0, 8192, 2, device="cuda")],
        "index_select": lambda x: x.index_select(0, torch.arange(0, 8192, 2, device="cuda")),
        "gather": lambda x: x.gather(1, torch.zeros(8192, 8, dtype=torch.long, device="cuda")),
        "layer_norm": lambda x: F.layer_norm(
            x,
            (4096,),
            torch.ones(4096, device="cuda", requires_grad=True),
            torch.zeros(4096, device="cuda", requires_grad=True),
        ),
        "rms_norm": lambda x: F.rms_norm(x, (4096,), torch.ones(4096, device="cuda", requires_grad=True)),
        "gelu": lambda x: F.gelu(x),
        "dropout": lambda x: F.dropout(x, 0.1),
        "silu": lambda x: F.silu(x),
        "relu": lambda x: F.relu(x),
        "softplus": lambda x: F.softplus(x),
        "prelu": lambda x: F.prelu(x, torch.ones(4096, device="cuda", requires_grad=True)),
        "glu": lambda x: F.glu(x),
        "cross_entropy": lambda x: F.cross_entropy(x, torch.zeros(8192, dtype=torch.long, device="cuda")),
        "cross_entropy smooth": lambda x: F.cross_entropy(
            x, torch.zeros(8192, dtype=torch.long, device="cuda"), label_smoothing=0.1
        ),
        "mse": lambda x: F.mse_loss(x, torch.zeros_like(x)),
        "bce_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.zeros_like(x)),
        "kl": lambda x: F.kl_div(x, torch.zeros_like(x), reduction="batchmean"),
        "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.zeros_like(x)),
        "matmul": lambda x: x @ x.t(),
        "mm half": lambda x: x.half() @ x.half().t(),
        "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
        "bmm": lambda x: torch.bmm(x.view(64, 128, 4096), x.view(64, 4096, 128)),
        "linear bias": lambda x: F.linear(
            x,
            torch.ones(4096, 4096, device="cuda", requires_grad=True),
            torch.ones(4096, device="cuda", requires_grad=True),
        ),
        "linear 3d bias": lambda x: F.linear(
            x.view(8, 1024, 4096),
            torch.ones(4096, 4096, device="cuda", requires_grad=True),
            torch.ones(4096, device="cuda", requires_grad=True),
        ),
        "linear bf16 bias": lambda x: F.linear(
            x.bfloat16(),
            torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16, requires_grad=True),
            torch.ones(4096, device="cuda", dtype=torch.bfloat16, requires_grad=True),
        ),
        "cat": lambda x: torch.cat([x, x], 1),
        "stack": lambda x: torch.stack([x, x]),
        "split": lambda x: torch.cat(x.split(1000, 1), 1),
        "repeat_interleave": lambda x: x.repeat_interleave(2, 0),
        "roll": lambda x: x.roll(3, 0),
        "flip": lambda x: x.flip(1),
        "tril": lambda x: x.tril(),
        "pad": lambda x: F.pad(x, (1, 1)),
        "contiguous t": lambda x: x.t().contiguous(),
        "unique": lambda x: (x * 10).long().unique().float(),
        "bincount": lambda x: torch.bincount((x.abs() * 10).long().flatten()).float(),
        "histc": lambda x: torch.histc(x, 100),
        "multinomial": lambda x: torch.multinomial(x.abs() + 1e-3, 1).float(),
        "isnan any": lambda x: torch.isnan(x).any().float(),
        "isfinite all": lambda x: torch.isfinite(x).all().float(),
        "cdist": lambda x: torch.cdist(x[:1024], x[:1024]),
        "outer": lambda x: torch.outer(x[0], x[0]),
        "pow": lambda x: x.pow(2),
        "exp": lambda x: x.exp(),
        "clamp": lambda x: x.clamp(-1, 1),
        "scatter_add": lambda x: torch.zeros(8192, 4096, device="cuda").scatter_add(
            0, torch.zeros(8192, 4096, dtype=torch.long, device="cuda"), x
        ),
        "index_add": lambda x: torch.zeros(100, 4096, device="cuda").index_add(
            0, torch.zeros(8192, dtype=torch.long, device="cuda"), x
        ),
        "index_put acc": lambda x: torch.zeros(100, 4096, device="cuda").index_put(
            (torch.zeros(8192, dtype=torch.long, device="cuda"),), x, accumulate=True
        ),
        "searchsorted": lambda x: torch.searchsorted(x.sort(1).values, x).float(),
        "half cpu": lambda x: x.half().cpu().cuda(),
        "to cpu double": lambda x: x.detach().to("cpu", torch.float64).sum().cuda().float().requires_grad_(True),
        "fft": lambda x: torch.fft.rfft(x).abs(),
        "svd": lambda x: torch.linalg.svdvals(x[:256, :256]),
        "cholesky": lambda x: torch.linalg.cholesky(
            x[:512, :512] @ x[:512, :512].t() + 1e3 * torch.eye(512, device="cuda")
        ),
        "inverse": lambda x: torch.linalg.inv(x[:512, :512]),
        "solve": lambda x: torch.linalg.solve(x[:512, :512], x[:512, :64]),
    }
    for name, f in one.items():
        for dtype in (torch.float32, torch.float16):

            def make(f=f, dtype=dtype):
                x = tensor(8192, 4096, dtype=dtype, grad=True)
                return lambda: f(x)

            cases[f"{name} {str(dtype)[6:]}"] = make
    for rows, width, count in ((50257, 768, 8192), (30522, 768, 4096), (1024, 768, 1024), (100000, 128, 65536)):

        def make(rows=rows, width=width, count=count):
            weight = tensor(rows, width, grad=True)
            ids = torch.randint(rows, (count,), device="cuda")
            return lambda: F.embedding(ids, weight)

        cases[f"embedding {rows}x{width} n{count}"] = make
    images = {
        "batch_norm": lambda x: F.batch_norm(
            x,
            torch.zeros(64, device="cuda"),
            torch.ones(64, device="cuda"),
            torch.ones(64, device="cuda", requires_grad=True),
            torch.zeros(64, device="cuda", requires_grad=True),
            True,
        ),
        "group_norm": lambda x: F.group_norm(
            x, 8, torch.ones(64, device="cuda", requires_grad=True), torch.zeros(64, device="cuda", requires_grad=True)
        ),
        "instance_norm": lambda x: F.instance_norm(x),
        "max_pool": lambda x: F.max_pool2d(x, 2),
        "avg_pool": lambda x: F.avg_pool2d(x, 2),
        "adaptive": lambda x: F.adaptive_avg_pool2d(x, 1),
        "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "nearest": lambda x: F.interpolate(x, scale_factor=2),
        "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
        "unfold": lambda x: F.unfold(x, 3, padding=1),
        "grid_sample": lambda x: F.grid_sample(
            x, torch.zeros(16, 64, 64, 2, device="cuda", dtype=x.dtype), align_corners=False
        ),
    }
    for name, f in images.items():
        for dtype in (torch.float32, torch.float16):
            for last in (False, True):

                def make(f=f, dtype=dtype, last=last):
                    x = tensor(16, 64, 112, 112, dtype=dtype, grad=True, channels_last=last)
                    return lambda: f(x)

                cases[f"{name} {str(dtype)[6:]} {'nhwc' if last else 'nchw'}"] = make


def trace():
    mark = {"alloc": "+", "free_completed": "-"}
    return [
        (mark[e["action"]], e["size"], e["addr"] & 0xFFFFFFFFFF)
        for e in torch.cuda.memory._snapshot()["device_traces"][0]
        if e["action"] in mark
    ]


def measure(make):
    go = make()
    out = go()  # the libraries' own workspaces are taken once
    if out.requires_grad:
        out.sum().backward()
    del out
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
    result = go()
    forward = trace()
    torch.cuda.memory._record_memory_history(enabled=None)
    backward, name = [], None
    if result.requires_grad:
        gradient = torch.ones_like(result)
        name = type(result.grad_fn).__name__
        torch.cuda.memory._record_memory_history(max_entries=100000, context=None)
        result.backward(gradient)
        backward = trace()
        torch.cuda.memory._record_memory_history(enabled=None)
    return {"forward": forward, "backward": backward, "grad_fn": name, "out": [list(result.shape), str(result.dtype)]}


def main():
    add_others(), add_convolutions(), add_recurrent(), add_attention()
    results = {}
    for name, make in cases.items():
        try:
            results[name] = measure(make)
        except Exception as problem:  # a kernel that does not support the case
            torch.cuda.memory._record_memory_history(enabled=None)
            results[name] = {"error": str(problem)[:200]}
        torch.cuda.empty_cache()
    with gzip.open(sys.argv[1], "wt") as file:
        json.dump({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(0), "cases": results}, file)
    print(len(results), "cases", sum("error" in r for r in results.values()), "refused")


main()
