"""What differs between the releases of PyTorch, each number as it stands in their sources; no other PyTorch than the installed one is needed."""

import ast
import sys
from types import SimpleNamespace

import pytest

from common import ROOT

torch = pytest.importorskip("torch")

sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts" / "plan_accuracy")]

import check_kernels  # noqa: E402
from faultline.plan.torch.kernels import attention, attention_choice, blas, temporaries  # noqa: E402
from faultline.plan.torch.operations import missing_shapes  # noqa: E402
from faultline.plan.torch.release import releases  # noqa: E402
from faultline.plan.torch.release.releases import Release  # noqa: E402

aten = torch.ops.aten
HALF, BF16, FLOAT = torch.float16, torch.bfloat16, torch.float32
MINORS = range(1, 14)


def gpu(*capability, sm=132):
    return SimpleNamespace(
        compute_capability=capability,
        multi_processor_count=sm,
        max_threads_per_multi_processor=2048,
        warp_size=32,
        l2_cache_size=50 << 20,
        name="a GPU",
    )


T4, V100, A100, RTX30, L4, H100 = (
    gpu(7, 5, sm=40),
    gpu(7, 0, sm=80),
    gpu(8, 0, sm=108),
    gpu(8, 6, sm=84),
    gpu(8, 9, sm=58),
    gpu(9, 0),
)
B200, B300, RTX50, SPARK = gpu(10, 0, sm=148), gpu(10, 3, sm=148), gpu(12, 0, sm=170), gpu(12, 1, sm=48)


def meta(*size, dtype=FLOAT, stride=None):
    return (
        torch.empty_strided(size, stride, dtype=dtype, device="meta")
        if stride
        else torch.empty(size, dtype=dtype, device="meta")
    )


def blocks(func, args, outputs, where=H100, **kwargs):
    return check_kernels.modelled(temporaries.steps(func, args, kwargs, outputs, where))[0]


def most(func, args, outputs, where=H100, **kwargs):
    return check_kernels.modelled(temporaries.steps(func, args, kwargs, outputs, where))[1]


# --- which release it is


@pytest.mark.parametrize(
    "version, cuda, cudnn, expected",
    [
        ("2.1.2+cu121", "12.1", 8902, ((2, 1, 2), (12, 1), 8902)),
        ("2.3.1", None, None, ((2, 3, 1), (12, 1), 8902)),
        ("2.4.1", None, None, ((2, 4, 1), (12, 1), 90100)),
        ("2.5.0", None, None, ((2, 5, 0), (12, 4), 90100)),
        ("2.6.0", None, None, ((2, 6, 0), (12, 4), 90100)),
        ("2.6.0+cu126", None, None, ((2, 6, 0), (12, 6), 90501)),
        ("2.7.1", None, None, ((2, 7, 1), (12, 6), 90501)),
        ("2.8.0", None, None, ((2, 8, 0), (12, 8), 91002)),
        ("2.9.1+cu130", None, None, ((2, 9, 1), (13, 0), 91300)),
        ("2.10.0", None, None, ((2, 10, 0), (12, 8), 91002)),
        ("2.10.0+cu130", None, None, ((2, 10, 0), (13, 0), 91501)),
        ("2.11.0+cu130", None, None, ((2, 11, 0), (13, 0), 91900)),
        ("2.11.0+cu126", None, None, ((2, 11, 0), (12, 6), 91002)),
        ("2.12.1", None, None, ((2, 12, 1), (13, 0), 92000)),
        ("2.13.0+cpu", None, None, ((2, 13, 0), (13, 0), 92000)),
        ("2.8.0a0+git1234", "12.9", 91200, ((2, 8, 0), (12, 9), 91200)),
        ("2.14.0.dev20260801", None, None, ((2, 14, 0), (13, 0), 92400)),
        ("2.14.1", None, None, ((2, 14, 1), (13, 0), 92400)),
        ("2.15.0", None, None, ((2, 15, 0), (13, 2), 92600)),
        ("2.15.0+cu132", "13.2", 92600, ((2, 15, 0), (13, 2), 92600)),
        ("2.16.0", None, None, ((2, 16, 0), (13, 2), 92600)),
    ],
)
def test_a_release_is_known_by_its_versions(version, cuda, cudnn, expected):
    release = Release.of(version, cuda, cudnn)
    assert (release.version, release.cuda, release.cudnn) == expected


def test_the_installed_one_is_planned_for_and_another_can_be_assumed(monkeypatch):
    assert releases.installed().name == torch.__version__.split("+")[0]
    monkeypatch.setenv("FAULTLINE_PLAN_RELEASE", "2.9.1+cu130")
    assert releases.installed() == Release((2, 9, 1), (13, 0), 91300)
    with releases.assumed("2.4.1"):
        assert releases.now().name == "2.4.1"


# --- scaled_dot_product_attention


def choose(
    release,
    where,
    dtype=HALF,
    b=2,
    h=8,
    t=512,
    s=512,
    d=64,
    dv=None,
    keys=None,
    mask=None,
    dropout=0.0,
    causal=False,
    gqa=False,
    grad=True,
    offset=0,
    **enabled,
):
    q = torch.empty(b * h * t * d + offset, dtype=dtype, device="meta")[offset:].view(b, h, t, d)
    k, v = meta(b, keys or h, s, d, dtype=dtype), meta(b, keys or h, s, dv or d, dtype=dtype)
    return attention_choice.choose(
        q,
        k,
        v,
        mask,
        dropout,
        causal,
        None,
        gqa,
        grad,
        where,
        enabled,
        release if isinstance(release, Release) else Release.of(release),
    )


def mask(*size, dtype=HALF):
    return meta(*(size or (2, 1, 512, 512)), dtype=dtype)


CHOICES = [
    # Turing: FlashAttention 1 had it, FlashAttention 2 has not.
    ("2.1.2", T4, dict(b=1, h=1, t=512), "flash"),
    ("2.1.2", T4, dict(b=16, h=12, t=512), "efficient"),
    ("2.2.0", T4, {}, "efficient"),
    ("2.13.0", T4, {}, "efficient"),
    ("2.1.2", V100, dict(b=1, h=1), "efficient"),
    ("2.1.2", T4, dict(dtype=BF16), "efficient"),
    ("2.2.0", T4, dict(dtype=BF16), "math"),
    ("2.13.0", T4, dict(dtype=BF16), "math"),
    # 2.1 weighs the two against each other: with gradients 6 * b * h against the queries, else by how many blocks there are.
    ("2.1.2", A100, dict(b=8, h=12, t=1024), "flash"),
    ("2.1.2", A100, dict(b=16, h=12, t=1024), "efficient"),
    ("2.1.2", A100, dict(b=8, h=12, t=575), "efficient"),
    ("2.1.2", A100, dict(b=8, h=12, t=576), "flash"),
    ("2.1.2", A100, dict(b=1, h=8, t=1024, grad=False), "efficient"),
    ("2.1.2", A100, dict(b=8, h=12, t=1024, grad=False), "flash"),
    ("2.1.2", A100, dict(b=8, h=12, t=1024, d=128, grad=False), "efficient"),
    ("2.1.2", A100, dict(b=1, h=8, t=64, s=64, grad=False), "flash"),
    ("2.2.0", A100, dict(b=16, h=12, t=1024), "flash"),
    ("2.4.1", A100, dict(b=16, h=12, t=1024), "flash"),
    # its heads: up to 128 and whole eights; from 2.2 up to 256, padded.
    ("2.1.2", A100, dict(b=1, h=1, d=160), "efficient"),
    ("2.1.2", A100, dict(b=1, h=1, d=60), "math"),
    ("2.2.0", A100, dict(d=160), "flash"),
    ("2.2.0", A100, dict(d=60), "flash"),
    ("2.1.2", A100, dict(b=1, h=1, t=256, s=512, causal=True), "flash"),
    ("2.2.0", A100, dict(t=256, causal=True), "efficient"),
    # small GPUs that train wide heads
    ("2.1.2", RTX30, dict(b=1, h=1, d=72), "efficient"),
    ("2.1.2", RTX30, dict(b=1, h=1, d=64), "flash"),
    ("2.1.2", A100, dict(b=1, h=1, d=72), "flash"),
    ("2.2.2", RTX30, dict(d=232), "efficient"),
    ("2.3.0", RTX30, dict(d=232), "flash"),
    ("2.3.0", RTX30, dict(d=232, dropout=0.1), "efficient"),
    ("2.3.0", L4, dict(d=200), "efficient"),
    ("2.3.0", L4, dict(d=200, grad=False), "flash"),
    ("2.2.2", L4, dict(d=192), "flash"),
    ("2.7.0", RTX50, dict(d=200), "efficient"),
    ("2.8.0", SPARK, dict(d=200), "efficient"),
    ("2.8.0", B200, dict(d=200), "flash"),
    # Blackwell: nothing was built for it before 2.7, for 12.1 before 2.8.
    ("2.6.0", B200, {}, "math"),
    ("2.6.0", RTX50, {}, "math"),
    ("2.7.0", B200, {}, "flash"),
    ("2.7.0", RTX50, {}, "flash"),
    ("2.7.0", SPARK, {}, "math"),
    ("2.8.0", SPARK, {}, "flash"),
    ("2.6.0", RTX50, dict(dtype=FLOAT), "math"),
    ("2.7.0", RTX50, dict(dtype=FLOAT), "efficient"),
    # Hopper and cuDNN
    ("2.1.2", H100, dict(b=1, h=1), "flash"),
    ("2.4.1", H100, {}, "flash"),
    ("2.5.0", H100, {}, "cudnn"),
    ("2.5.1", H100, {}, "flash"),
    ("2.5.0", A100, {}, "flash"),
    ("2.5.0", A100, dict(mask=mask()), "cudnn"),
    ("2.5.1", A100, dict(mask=mask()), "efficient"),
    ("2.5.0", H100, dict(d=136), "flash"),
    ("2.5.0", H100, dict(t=1), "cudnn"),
    ("2.5.0", H100, dict(dropout=0.1), "cudnn"),
    ("2.6.0", H100, {}, "flash"),
    ("2.8.0", H100, {}, "flash"),
    ("2.8.0", H100, dict(mask=mask()), "efficient"),
    ("2.9.0", H100, {}, "cudnn"),
    ("2.9.1", B200, {}, "cudnn"),
    ("2.9.1", B300, {}, "flash"),
    ("2.9.1", A100, {}, "flash"),
    ("2.9.1", RTX50, {}, "flash"),
    ("2.9.1", H100, dict(mask=mask()), "cudnn"),
    ("2.9.1", H100, dict(dropout=0.1), "cudnn"),
    ("2.9.1+cu130", H100, dict(dropout=0.1), "flash"),
    ("2.9.1+cu130", H100, {}, "cudnn"),
    ("2.9.1", H100, dict(d=256), "cudnn"),
    ("2.10.0", H100, {}, "flash"),
    ("2.10.0+cu126", H100, {}, "flash"),
    ("2.10.0+cu130", H100, {}, "cudnn"),
    ("2.10.0+cu130", B300, {}, "cudnn"),
    ("2.10.0", H100, dict(mask=mask()), "efficient"),
    ("2.11.0+cu130", H100, {}, "cudnn"),
    ("2.11.0+cu126", H100, {}, "flash"),
    ("2.11.0+cu128", H100, {}, "cudnn"),
    ("2.11.0", A100, {}, "flash"),
    # how wide a head cuDNN takes
    ("2.11.0", H100, dict(d=256), "cudnn"),
    ("2.12.0", H100, dict(d=256), "cudnn"),
    ("2.13.0", H100, dict(d=256), "flash"),
    ("2.13.0", H100, dict(d=136), "flash"),
    ("2.13.0", H100, dict(d=128), "cudnn"),
    (Release((2, 13, 0), (13, 0), 92300), H100, dict(d=256), "cudnn"),
    (Release((2, 13, 0), (13, 0), 92300), B200, dict(d=256), "cudnn"),
    (Release((2, 13, 0), (13, 0), 92300), H100, dict(d=136), "flash"),
    (Release((2, 13, 0), (13, 0), 92300), H100, dict(d=136, grad=False), "cudnn"),
    (Release((2, 13, 0), (13, 0), 92200), H100, dict(d=256), "flash"),
    ("2.12.0", B200, dict(d=256), "flash"),
    ("2.11.0", B200, dict(d=192, dv=128), "cudnn"),
    ("2.10.0+cu130", B200, dict(d=192, dv=128), "efficient"),
    ("2.11.0", H100, dict(d=192, dv=128), "cudnn"),
    ("2.13.0", H100, dict(d=192, dv=128), "cudnn"),
    ("2.13.0", H100, dict(d=192, dv=192), "flash"),
    # dropout in sixteenths
    ("2.11.0", H100, dict(dropout=0.1), "cudnn"),
    ("2.12.0", H100, dict(dropout=0.1), "flash"),
    ("2.12.0", H100, dict(dropout=0.125), "cudnn"),
    ("2.13.0", H100, dict(dropout=0.0625), "cudnn"),
    ("2.13.0", H100, dict(dropout=0.1, mask=mask()), "efficient"),
    # single queries and keys
    ("2.11.0", H100, dict(t=1), "cudnn"),
    ("2.11.0", H100, dict(t=1, dropout=0.125), "flash"),
    ("2.11.0", H100, dict(s=1), "flash"),
    # 2.13: every minor of 9 and 10 where it was built with CUDA 13
    ("2.12.0", gpu(10, 1), {}, "flash"),
    ("2.13.0", gpu(10, 1), {}, "cudnn"),
    ("2.13.0+cu126", gpu(10, 1), {}, "flash"),
    ("2.13.0", RTX50, {}, "flash"),
    ("2.13.0", H100, dict(b=70000, h=1, t=16, s=16), "flash"),
    ("2.12.0", H100, dict(b=70000, h=1, t=16, s=16), "cudnn"),
    # and queries that begin at a place the memory-efficient kernel cannot load from
    ("2.13.0", A100, dict(mask=mask(), offset=4), "math"),
    ("2.12.0", A100, dict(mask=mask(), offset=4), "efficient"),
    ("2.13.0", A100, dict(mask=mask(), offset=8), "efficient"),
    ("2.13.0", T4, dict(mask=mask(), offset=4), "efficient"),
    # grouped heads
    ("2.5.1", A100, dict(keys=2, gqa=True), "flash"),
    ("2.13.0", A100, dict(dtype=FLOAT, keys=2, gqa=True), "math"),
    ("2.11.0", H100, dict(keys=2, gqa=True), "cudnn"),
    ("2.11.0", H100, dict(keys=2), "math"),
    # switched off
    ("2.11.0", H100, dict(cudnn=False), "flash"),
    ("2.11.0", H100, dict(cudnn=False, flash=False), "efficient"),
    ("2.6.0", H100, dict(flash=False, mem_efficient=False, math=False), "cudnn"),
]


@pytest.mark.parametrize("release, where, case, expected", CHOICES)
def test_the_attention_kernel_is_the_release_s_choice(release, where, case, expected):
    assert choose(release, where, **case) == expected


@pytest.mark.parametrize(
    "release, variable, value, expected",
    [
        ("2.9.0", "TORCH_CUDNN_SDPA_PREFERRED", "0", "flash"),
        ("2.9.0", "TORCH_CUDNN_SDPA_PREFERRED", "1", "cudnn"),
        ("2.9.0", "TORCH_CUDNN_SDPA_DEPRIORITIZED", "1", "cudnn"),
        ("2.11.0", "TORCH_CUDNN_SDPA_DEPRIORITIZED", "1", "flash"),
        ("2.11.0", "TORCH_CUDNN_SDPA_DEPRIORITIZED", "0", "cudnn"),
        ("2.11.0", "TORCH_CUDNN_SDPA_PREFERRED", "0", "cudnn"),
    ],
)
def test_the_order_can_be_changed_by_the_variable_of_the_release(monkeypatch, release, variable, value, expected):
    monkeypatch.setenv(variable, value)
    assert choose(release, H100) == expected


def test_nothing_is_chosen_when_all_that_fits_is_switched_off():
    with pytest.raises(RuntimeError, match="No available kernel"):
        choose("2.4.1", A100, dtype=torch.float64, math=False)


def test_the_program_s_own_order_of_kernels_is_kept(monkeypatch):
    monkeypatch.setattr(attention_choice, "_wanted_order", lambda: [2, 1, 0, 3, 0])
    assert choose("2.11.0", H100) == choose("2.6.0", A100) == "efficient"


# --- masks: what is made of one before the kernel sees it


def made_of(release, given, t, s, heads=2, b=2):
    query, key = meta(b, heads, t, 64, dtype=HALF), meta(b, heads, s, 64, dtype=HALF)
    numbers = attention_choice._float_mask(given, HALF, Release.of(release))
    return numbers, attention_choice._for_efficient(numbers, query, key, Release.of(release))


@pytest.mark.parametrize(
    "release, size, stride, storage",
    [
        ("2.1.2", (2, 1, 64, 64), None, 2 * 64 * 64),  # rows of whole sixteens stay
        ("2.1.2", (2, 1, 64, 72), None, 2 * 2 * 64 * 80),  # others are made whole, then padded
        ("2.1.2", (64, 64), (65, 1), 2 * 2 * 64 * 64),
        ("2.2.0", (2, 1, 64, 72), None, 2 * 64 * 72),  # whole eights stay
        ("2.2.0", (2, 1, 64, 70), None, 2 * 64 * 72),  # others are padded before they are expanded
        ("2.13.0", (2, 1, 64, 70), None, 2 * 64 * 72),
        ("2.13.0", (64, 100), None, 64 * 104),
        ("2.13.0", (64, 96), (97, 1), 64 * 104),  # eight more where the length is one of them already
        ("2.13.0", (1, 1, 1, 96), None, 96),
    ],
)
def test_a_mask_is_padded_as_the_release_does(release, size, stride, storage):
    _, result = made_of(release, meta(*size, dtype=HALF, stride=stride), 64, size[-1])
    assert tuple(result.shape) == (2, 2, 64, size[-1])
    assert result.untyped_storage().nbytes() == storage * 2


class Calls(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func._schema.name[6:])
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "release, has, lacks",
    [
        ("2.4.1", {"logical_not", "masked_fill_", "zeros_like"}, {"where"}),
        ("2.5.1", {"logical_not", "where"}, {"masked_fill_"}),
        ("2.6.0", {"where"}, {"logical_not", "masked_fill_"}),
        ("2.13.0", {"where"}, {"logical_not", "masked_fill_"}),
    ],
)
def test_a_boolean_mask_becomes_numbers_as_the_release_does_it(release, has, lacks):
    with Calls() as calls:
        numbers = attention_choice._float_mask(torch.ones(4, 8, dtype=torch.bool), HALF, Release.of(release))
    assert has <= set(calls.names) and not lacks & set(calls.names)
    assert numbers.dtype is HALF and numbers.shape == (4, 8)


# --- what attention takes


@pytest.mark.parametrize(
    "minor, d, expected",
    [
        (2, 160, 160),
        (6, 208, 224),
        (7, 160, 160),
        (7, 192, 192),
        (7, 208, 256),
        (10, 224, 256),
        (11, 96, 96),
        (11, 136, 192),
        (11, 200, 256),
        (13, 128, 128),
        (13, 160, 192),
    ],
)
def test_heads_are_rounded_in_flash_s_accumulators(minor, d, expected):
    assert Release.of(f"2.{minor}.0").flash_rounded_head(d) == expected
    q = meta(2, 4, 256, d, dtype=HALF)
    gradients = (q, q, q, q, q, meta(2, 4, 256), None, None, 256, 256, 0.0, True, None, None)
    with releases.assumed(f"2.{minor}.0"):
        assert (
            blocks(aten._scaled_dot_product_flash_attention_backward.default, gradients, [q, q, q])[-1]
            == 2 * 4 * 256 * expected * 4
        )


@pytest.mark.parametrize("version, splits", [("2.2.0", 6), ("2.4.1", 6), ("2.5.1", 12), ("2.13.0", 12)])
def test_few_queries_split_their_keys_over_the_multiprocessors(version, splits):
    """16 blocks of queries: six times as many are the first to fill 85 % of 108 slots, twelve times as many of 216."""
    q, k = meta(1, 16, 1, 64, dtype=HALF), meta(1, 16, 65536, 64, dtype=HALF)
    with releases.assumed(version):
        taken = blocks(aten._scaled_dot_product_flash_attention.default, (q, k, k), [q], A100)
    assert taken == [splits * 16 * 4, splits * 16 * 64 * 4]


def test_the_first_flash_adds_up_in_float_where_keys_do_not_fit_one_block():
    with releases.assumed("2.1.2"):
        for d, s, loops in ((64, 256, False), (64, 257, True), (128, 128, False), (128, 129, True)):
            q, k = meta(2, 4, 100, d, dtype=HALF), meta(2, 4, s, d, dtype=HALF)
            joined = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, k)]
            assert blocks(aten._scaled_dot_product_flash_attention.default, joined, [q]) == (
                [q.numel() * 4] if loops else []
            )
            assert blocks(aten._scaled_dot_product_flash_attention.default, (q, k, k), [q])[:3] == [
                q.numel() * 2,
                k.numel() * 2,
                k.numel() * 2,
            ]
            given = (joined[0], *joined, joined[0], meta(2, 4, 112), None, None, 100, s, 0.0, False, None, None)
            assert blocks(aten._scaled_dot_product_flash_attention_backward.default, given, [q, k, k]) == [
                2 * 4 * 112 * 4
            ] + ([q.numel() * 4] if loops else [])


@pytest.mark.parametrize("minor, on_host", [(1, True), (6, True), (7, False), (13, False)])
def test_the_seed_of_flash_is_on_the_host_in_older_releases(minor, on_host):
    q = meta(2, 4, 128, 64, dtype=HALF)
    with releases.assumed(f"2.{minor}.0"):
        assert temporaries.extra_outputs(aten._scaled_dot_product_flash_attention.default, (q, q, q), {}, H100) == (
            {6: 0, 7: 0} if on_host else None
        )


@pytest.mark.parametrize(
    "version, where, b_h, s, d, expected",
    [
        (
            "2.3.1",
            T4,
            32,
            2048,
            128,
            32 * (32 * 2048 * 2 * 128 + 32 * 2 * 4100) * 4,
        ),  # a copy of full length for each block of 64 keys: two GiB
        ("2.4.1", T4, 32, 2048, 128, 32 * (6 * 64 * 2 * 128 + 32 * 2 * 4100) * 4),  # six copies of one block
        ("2.3.1", A100, 32, 2048, 128, 32 * 16 * 1 * (128 * 128 + 4) * 4),
        ("2.13.0", A100, 32, 2048, 128, 32 * 16 * 1 * (128 * 128 + 4) * 4),
    ],
)  # in registers
def test_the_memory_efficient_backward_pass_keeps_as_many_sums_as_the_release(version, where, b_h, s, d, expected):
    with releases.assumed(version):
        assert attention.efficient_backward_workspace(1, b_h, s, s, d, d, HALF, False, where) == expected


# --- matrix products


@pytest.mark.parametrize(
    "minor, large",
    [
        (1, {H100.compute_capability}),
        (11, {H100.compute_capability}),
        (12, {(9, 0), (10, 0), (10, 3), (12, 0), (12, 1)}),
        (13, {(9, 0), (10, 0), (10, 3), (12, 0), (12, 1)}),
        (14, {(9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)}),
    ],
)
def test_the_workspace_of_cublas(minor, large):
    with releases.assumed(f"2.{minor}.0"):
        for capability in ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)):
            assert blas.cublas_workspace_bytes(gpu(*capability)) == (32 << 20 if capability in large else 8519680)


LINEAR = (meta(16), meta(64, 32), meta(32, 16))


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("unified", [None, "0", "1"])
def test_the_workspace_of_cublaslt_is_taken_per_call_kept_or_shared(monkeypatch, minor, unified):
    monkeypatch.delenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE", raising=False)
    if unified:
        monkeypatch.setenv("TORCH_CUBLASLT_UNIFIED_WORKSPACE", unified)
    shared = minor >= 8 and unified == "1" or minor >= 12 and unified != "0"
    with releases.assumed(f"2.{minor}.0"):
        kept = [key for key, _ in temporaries.persistent(aten.addmm.default, LINEAR, {}, H100)]
        taken = blocks(aten.addmm.default, LINEAR, [meta(64, 16)])
    assert kept == (["cublas", "cublaslt"] if minor >= 9 and not shared else ["cublas"])
    assert taken == ([1 << 20] if minor <= 8 and not shared else [])


@pytest.mark.parametrize(
    "minor, bias, left, right, dtype, fused",
    [
        (1, (16,), (64, 32), (32, 16), HALF, True),
        (9, (1, 16), (64, 32), (32, 16), HALF, False),
        (10, (1, 16), (64, 32), (32, 16), HALF, True),
        (13, (1, 16), (64, 32), (32, 16), HALF, True),
        (9, (16,), (1, 32), (32, 16), HALF, True),
        (10, (16,), (1, 32), (32, 16), HALF, False),
        (11, (16,), (1, 32), (32, 16), HALF, True),
        (13, (1,), (64, 32), (32, 1), HALF, False),
        (3, (16,), (2097120, 32), (32, 16), HALF, False),
        (4, (16,), (2097120, 32), (32, 16), HALF, True),
        (13, (64, 16), (64, 32), (32, 16), HALF, False),
    ],
)
def test_which_products_go_through_cublaslt(minor, bias, left, right, dtype, fused):
    with releases.assumed(f"2.{minor}.0"):
        assert (
            blas._bias_is_fused("aten::addmm", tuple(meta(*size, dtype=dtype) for size in (bias, left, right)), {})
            == fused
        )


@pytest.mark.parametrize("minor, dtype, fused", [(3, HALF, False), (3, FLOAT, True), (4, HALF, True)])
def test_older_releases_ask_cublaslt_for_dense_halves_only(minor, dtype, fused):
    with releases.assumed(f"2.{minor}.0"):
        assert (
            blas._bias_is_fused(
                "aten::addmm",
                (meta(16, dtype=dtype), meta(64, 32, dtype=dtype, stride=(96, 1)), meta(32, 16, dtype=dtype)),
                {},
            )
            == fused
        )


# --- other kernels


@pytest.mark.parametrize(
    "version, mean, weighted, none", [("2.2.2", 5, 6, 5), ("2.3.0", 2, 2, 2), ("2.4.1", 2, 2, 2), ("2.13.0", 2, 2, 2)]
)
def test_binary_cross_entropy_with_logits(version, mean, weighted, none):
    x = meta(1 << 20)
    func = aten.binary_cross_entropy_with_logits.default
    with releases.assumed(version):
        staging = 1 << 16
        assert mean * x.numel() * 4 <= most(func, (x, x), [meta()]) < mean * x.numel() * 4 + staging
        assert (
            weighted * x.numel() * 4 <= most(func, (x, x, None, meta(1)), [meta()]) < weighted * x.numel() * 4 + staging
        )
        assert most(func, (x, x, None, None, 0), [x]) + x.numel() * 4 == none * x.numel() * 4


@pytest.mark.parametrize("minor", MINORS)
def test_the_gradient_of_a_tall_layer_norm(minor):
    x, w = meta(131072, 1024), meta(1024)
    with releases.assumed(f"2.{minor}.0"):
        taken = blocks(
            aten.native_layer_norm_backward.default,
            (x, x, [1024], meta(131072, 1), meta(131072, 1), w, w, [True, True, True]),
            [x, w, w],
        )
    assert taken[:2] == ([1024 * 1024 * 4] * 2 if minor >= 8 else [])


@pytest.mark.parametrize("minor", MINORS)
def test_the_gradient_of_a_small_embedding(minor):
    n, rows, width = 65536, 512, 768
    with releases.assumed(f"2.{minor}.0"):
        taken = blocks(
            aten.embedding_dense_backward.default,
            (meta(n, width, dtype=HALF), meta(n, dtype=torch.int64), rows, -1, False),
            [meta(rows, width, dtype=HALF)],
        )
    parts = n // 10 + rows
    assert taken[-1] == (rows * width * 4 if minor >= 11 else parts * width * 4)


@pytest.mark.parametrize("minor", MINORS)
def test_the_norms_of_many_tensors(minor):
    given = [meta(100) for _ in range(1000)]
    with releases.assumed(f"2.{minor}.0"):
        kept, others = (
            ask(aten._foreach_norm.Scalar, (given,), {}, H100)
            for ask in (temporaries.kept_storage, temporaries.extra_outputs)
        )
    assert (kept, others) == (({0: 4000}, dict.fromkeys(range(1, 1000), 0)) if minor < 3 else (None, None))


@pytest.mark.parametrize("minor", MINORS)
def test_the_largest_of_many(minor):
    slices, size = 4000, 1000
    with releases.assumed(f"2.{minor}.0"):
        taken = blocks(
            aten.topk.default, (meta(slices, size), 5), [meta(slices, 5), meta(slices, 5, dtype=torch.int64)]
        )
    counts, each = slices * 256 * 2, slices * 4  # one block for each slice
    assert (
        taken[:-2] == [each, each * 2, each * 2, counts, slices * 1024, each, each]
        if minor >= 10
        else [each, each, each * (2 if minor >= 7 else 1), each * (2 if minor >= 7 else 1), counts, each, each]
    )


@pytest.mark.parametrize("minor", MINORS)
def test_a_count_of_truth_values_needs_no_mask_of_them(minor):
    x = meta(4096, dtype=torch.bool)
    with releases.assumed(f"2.{minor}.0"):
        assert most(aten.count_nonzero.dim_IntList, (x, [0]), [meta(dtype=torch.int64)]) == 4096 * 8 + (
            4096 if minor < 5 else 0
        )
        assert most(aten.count_nonzero.dim_IntList, (meta(4096), [0]), [meta(dtype=torch.int64)]) == 4096 * 9


@pytest.mark.parametrize("minor", MINORS)
def test_group_norm_of_halves(minor):
    x = meta(4, 64, 32, 32, dtype=HALF)
    args = (x, meta(64, dtype=HALF), meta(64, dtype=HALF), 4, 64, 1024, 8, 1e-5)
    with releases.assumed(f"2.{minor}.0"):
        assert (
            blocks(aten.native_group_norm.default, args, [x, meta(4, 8, dtype=HALF), meta(4, 8, dtype=HALF)])
            == [4 * 8 * 4] * (2 if minor >= 13 else 0) + [4 * 64 * 4] * 2
        )


@pytest.mark.parametrize(
    "release, dtype, kernel_size, last, slow",
    [
        ("2.8.0", BF16, 3, False, False),
        ("2.9.0", BF16, 3, False, True),
        ("2.9.1", HALF, 3, False, True),
        ("2.9.1+cu130", HALF, 3, False, True),
        (Release((2, 9, 1), (12, 8), 91501), HALF, 3, False, False),
        (Release((2, 9, 0), (12, 8), 91501), HALF, 3, False, True),
        ("2.9.1", FLOAT, 3, False, False),
        ("2.9.1", BF16, 1, False, False),
        ("2.9.1", BF16, 3, True, False),
        ("2.10.0", BF16, 3, False, False),
    ],
)
def test_3d_convolutions_of_halves_in_2_9(release, dtype, kernel_size, last, slow):
    x, w = meta(2, 128, 8, 64, 64, dtype=dtype), meta(128, 128, *[kernel_size] * 3, dtype=dtype)
    x = x.contiguous(memory_format=torch.channels_last_3d) if last else x
    with releases.assumed(release):
        taken = blocks(
            aten.convolution.default, (x, w, None, [1] * 3, [kernel_size // 2] * 3, [1] * 3, False, [0] * 3, 1), [x]
        )
    assert (taken == [128 * 27 * 8 * 64 * 64 * 2]) == slow


@pytest.mark.parametrize("minor", MINORS)
def test_reductions_of_halves_and_variances_read_in_vectors(minor):
    with releases.assumed(f"2.{minor}.0"):
        from faultline.plan.torch.kernels.reductions import Reduction

        assert Reduction("sum", HALF).input_vector == (8 if minor >= 10 else 4)
        assert Reduction("sum", FLOAT).input_vector == 4
        assert Reduction("var", FLOAT).input_vector == (2 if minor >= 7 else 1)
        assert releases.now().vectors_from_128 == (minor >= 10)
        assert releases.now().settings_variables[1:] == (("PYTORCH_ALLOC_CONF",) if minor >= 10 else ())


@pytest.mark.parametrize(
    "release, variable, allocated",
    [
        ("2.9.1", "PYTORCH_ALLOC_CONF", 5),
        ("2.10.0", "PYTORCH_ALLOC_CONF", 6),
        ("2.9.1", "PYTORCH_CUDA_ALLOC_CONF", 6),
        ("2.13.0", "PYTORCH_CUDA_ALLOC_CONF", 6),
    ],
)
def test_the_allocator_reads_the_variables_of_its_release(dry_run, monkeypatch, release, variable, allocated):
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, "roundup_power2_divisions:2")
    monkeypatch.setenv("FAULTLINE_PLAN_RELEASE", release)
    ran = dry_run(
        "import torch\nx = torch.empty(5 << 20, dtype=torch.uint8, device='cuda')\nprint(torch.cuda.memory_allocated() >> 20, torch.backends.cudnn.version())"
    )
    assert ran.status == 0 and ran.out.split() == [str(allocated), str(Release.of(release).cudnn)], ran.out + ran.err


def test_what_cudnn_8_takes_is_said_to_be_unmeasured(dry_run, monkeypatch):
    monkeypatch.setenv("FAULTLINE_PLAN_RELEASE", "2.3.1")
    ran = dry_run("import torch\ntorch.nn.Conv2d(8, 8, 3).cuda()(torch.randn(1, 8, 16, 16, device='cuda'))")
    assert ran.status == 0 and [note["text"] for note in ran.notes() if "cuDNN 8" in note["text"]], ran.err


# --- shapes that a release does not tell by itself


def test_attention_gives_what_the_kernels_of_2_3_and_2_4_give():
    q, k, v = meta(2, 8, 100, 64, dtype=HALF), meta(2, 8, 70, 64, dtype=HALF), meta(2, 8, 70, 64, dtype=HALF)
    out, sums, *_rest, seed, offset, debug = missing_shapes.flash_attention(q, k, v)
    assert (
        out.shape == q.shape
        and out.transpose(1, 2).shape == (2, 100, 8, 64)
        and sums.shape == (2, 8, 100)
        and sums.dtype is FLOAT
        and seed.dim() == offset.dim() == 0
        and debug.numel() == 0
    )
    out, sums, seed, offset = missing_shapes.efficient_attention(q, k, meta(2, 8, 70, 96, dtype=HALF), None, True)
    assert out.shape == (2, 8, 100, 96) and out.transpose(1, 2).is_contiguous() and sums.shape == (2, 8, 128)
    assert missing_shapes.efficient_attention(q, k, v, None, False)[1].numel() == 0


def test_the_layers_of_a_transformer_that_does_not_train():
    x = meta(2, 6, 32, dtype=HALF)
    assert missing_shapes.encoder_layer(x, 32, 4).shape == (2, 6, 32)
    for options, weights in (
        ({}, (2, 6, 6)),
        ({"average_attn_weights": False}, (2, 4, 6, 6)),
        ({"need_weights": False}, (0,)),
    ):
        out, found = missing_shapes.multi_head_attention(x, x, x, 32, 4, None, None, None, None, **options)
        assert out.shape == x.shape and found.shape == weights


@pytest.mark.parametrize(
    "name, given",
    [
        ("_foreach_mul.ScalarList", ([1.0, 2.0],)),
        ("_foreach_sqrt.default", ()),
        ("_foreach_norm.Scalar", (2,)),
        ("_foreach_addcmul.ScalarList", None),
    ],
)
def test_operations_on_lists_give_one_tensor_for_each(name, given):
    packet, overload = name.split(".")
    rule = missing_shapes.of_each(getattr(getattr(aten, packet), overload))
    tensors = [meta(3, 4, dtype=HALF), meta(5)]
    results = rule(tensors, *(given or ()))
    assert [r.shape for r in results] == ([(), ()] if "norm" in name else [(3, 4), (5,)]) and [
        r.dtype for r in results
    ] == [HALF, FLOAT]


@pytest.mark.parametrize("name", ["_foreach_mul_.ScalarList", "mul.Tensor", "_fused_adam_.default"])
def test_other_operations_do_not(name):
    packet, overload = name.split(".")
    assert missing_shapes.of_each(getattr(getattr(aten, packet), overload)) is None


# --- Python 3.9

SOURCES = sorted((ROOT / "python" / "faultline").rglob("*.py"))
_NEWER_MODULES = {"tomllib"}
_NEWER_NAMES = {
    ("itertools", "pairwise"),
    ("functools", "cached_property_slots"),
    ("enum", "StrEnum"),
    ("typing", "TypeAlias"),
    ("typing", "ParamSpec"),
    ("typing", "Self"),
    ("typing", "Never"),
    ("typing", "override"),
    ("typing", "assert_never"),
    ("types", "NoneType"),
    ("types", "EllipsisType"),
    ("types", "UnionType"),
    ("datetime", "UTC"),
    ("contextlib", "aclosing"),
    ("contextlib", "chdir"),
    ("inspect", "get_annotations"),
    ("bisect", "bisect_key"),
    ("math", "cbrt"),
    ("math", "exp2"),
    ("sys", "exception"),
    ("sys", "orig_argv"),
    ("sys", "stdlib_module_names"),
    ("asyncio", "timeout"),
    ("asyncio", "TaskGroup"),
    ("itertools", "batched"),
}
_TYPES = {
    "int",
    "str",
    "float",
    "bool",
    "bytes",
    "list",
    "dict",
    "tuple",
    "set",
    "frozenset",
    "type",
    "object",
    "complex",
    "None",
}


def newer_than_3_9(tree: ast.AST) -> list[str]:
    """What 3.9 parses but does not run."""
    found, annotations = [], set()
    postponed = any(
        isinstance(n, ast.ImportFrom) and n.module == "__future__" and any(a.name == "annotations" for a in n.names)
        for n in ast.walk(tree)
    )
    for node in ast.walk(tree):
        for held in (getattr(node, "annotation", None), getattr(node, "returns", None)) if postponed else ():
            if isinstance(held, ast.AST):
                annotations.update(map(id, ast.walk(held)))
    for node in ast.walk(tree):
        line = f"line {getattr(node, 'lineno', 0)}"
        if id(node) in annotations:
            continue
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [
                s.id
                if isinstance(s, ast.Name)
                else "None"
                if isinstance(s, ast.Constant) and s.value is None
                else s.value.id
                if isinstance(s, ast.Subscript) and isinstance(s.value, ast.Name)
                else ""
                for s in (node.left, node.right)
            ]
            if _TYPES & set(sides):
                found.append(f"{line}: X | Y of types")
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            words = {k.arg for k in node.keywords}
            if (
                name == "zip"
                and "strict" in words
                or name == "dataclass"
                and words & {"slots", "kw_only", "match_args"}
                or name in ("anext", "aiter")
                or name in ("bisect_left", "bisect_right", "bisect", "insort")
                and "key" in words
            ):
                found.append(f"{line}: {name}({', '.join(sorted(filter(None, words)))})")
            if name in ("add_note", "bit_count"):
                found.append(f"{line}: .{name}()")
        elif isinstance(node, ast.Import):
            found += [f"{line}: {a.name}" for a in node.names if a.name in _NEWER_MODULES]
        elif isinstance(node, ast.ImportFrom):
            found += [
                f"{line}: {node.module}.{a.name}"
                for a in node.names
                if node.module in _NEWER_MODULES or (node.module, a.name) in _NEWER_NAMES
            ]
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) in _NEWER_NAMES
        ):
            found.append(f"{line}: {node.value.id}.{node.attr}")
        elif isinstance(node, ast.Name) and node.id in ("ExceptionGroup", "BaseExceptionGroup", "EncodingWarning"):
            found.append(f"{line}: {node.id}")
    return found


def test_every_file_is_python_3_9():
    wrong = []
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 9))
        wrong += [f"{path.relative_to(ROOT)}: {what}" for what in newer_than_3_9(tree)]
    assert len(SOURCES) > 40 and not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "x: int | None = None",
        "def f(a: int | str): pass",
        "isinstance(1, int | str)",
        "Number = int | None",
        "zip(a, b, strict=True)",
        "import tomllib",
        "from itertools import pairwise",
        "@dataclass(slots=True)\nclass A: pass",
        "@dataclass(frozen=True, kw_only=True)\nclass A: pass",
        "n.bit_count()",
        "raise ExceptionGroup('', [])",
        "Names = list[str] | None",
    ],
)
def test_what_only_newer_python_runs_is_found(text):
    assert newer_than_3_9(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "from __future__ import annotations\nx: int | None = None\ndef f(a: list[str] | None) -> int | str: pass",
        "a = b | c",
        "a = {1} | {2}",
        "zip(a, b)",
        "'abc'.removeprefix('a')",
        "x: list[int] = []",
        "@dataclass(frozen=True)\nclass A: pass",
    ],
)
def test_what_3_9_runs_is_left_alone(text):
    assert not newer_than_3_9(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "match x:\n  case 1: pass",
        "with (open(a) as f, open(b) as g): pass\nexcept* E: pass",
        "try: pass\nexcept* E: pass",
        "type X = int",
    ],
)
def test_newer_syntax_is_refused(text):
    with pytest.raises(SyntaxError):
        ast.parse(text, feature_version=(3, 9))
