"""Operations and libraries that are not PyTorch's own: where they can be asked what they give, where the user tells it, where neither is."""

import pytest
from dry import H200, T4

torch = pytest.importorskip("torch")


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def texts(ran, kind):
    return [note["text"] for note in ran.notes() if note["kind"] == kind]


OWN = """
        import torch
        library = torch.library.Library("mine", "DEF")
        def define(schema, **kernels):
            library.define(schema)
            for key, kernel in kernels.items():
                library.impl(schema.partition("(")[0], kernel, key)
        def took(call):
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            result = call()
            return torch.cuda.max_memory_allocated() - before, result
"""


def test_code_for_the_gpu_that_is_python_is_run_and_what_it_takes_is_seen(dry_run):
    good(
        dry_run(
            OWN
            + """
        define("doubled(Tensor x) -> Tensor", CUDA=lambda x: torch.cat([x * 2, x]))
        x = torch.randn(1 << 20, device="cuda")
        peak, y = took(lambda: torch.ops.mine.doubled(x))
        assert y.shape == (2 << 20,) and y.is_cuda and peak == 12 << 20, peak
        if hasattr(torch.library, "custom_op"):
            @torch.library.custom_op("mine::rows", mutates_args=())
            def rows(x: torch.Tensor, n: int) -> torch.Tensor:
                return x.expand(n, -1).contiguous()
            rows.register_autograd(lambda ctx, g: (g.sum(0, keepdim=True), None))
            w = torch.randn(1, 1 << 18, device="cuda", requires_grad=True)
            peak, y = took(lambda: rows(w, 8))
            assert peak == 8 << 20
            y.sum().backward()
            assert w.grad.shape == w.shape
        """
        )
    )


@pytest.mark.parametrize(
    "schema, kernel, call, expected",
    [
        ("pairs(Tensor a, Tensor b) -> Tensor", "lambda a, b: (a[:, None] * b[None]).sum(-1)", "(r(3000, 64), r(500, 64))", [(3000, 500)]),
        ("flat(Tensor a, Tensor b) -> Tensor", "lambda a, b: (a @ b.t()).reshape(-1)", "(r(3000, 64), r(3000, 64))", [(9000000,)]),
        ("padded(Tensor a) -> Tensor", "lambda a: torch.nn.functional.pad(a, (1, 2))", "(r(7, 50000, 3000),)", [(7, 50000, 3003)]),
        ("both(Tensor a, int n) -> (Tensor, Tensor)", "lambda a, n: (a[:, :n].clone(), (a > 0).sum(1))", "(r(100000, 640), 5)", [(100000, 5), (100000,)]),
        ("halves(Tensor a) -> Tensor", "lambda a: a[::2].half()", "(r(4096, 4096),)", [(2048, 4096)]),
    ],
)  # fmt: skip
def test_the_kernel_for_the_host_tells_sizes_from_small_inputs(dry_run, schema, kernel, call, expected):
    """What it gives for the small inputs is checked against the real kernel here, on the same shapes made small."""
    ran = good(
        dry_run(
            OWN
            + f"""
        r = lambda *size: torch.randn(size, device="cuda")
        define({schema!r}, CPU={kernel})
        result = torch.ops.mine.{schema.partition("(")[0]}(*{call})
        result = result if isinstance(result, tuple) else (result,)
        assert [tuple(t.shape) for t in result] == {expected}, [t.shape for t in result]
        assert all(t.is_cuda for t in result)
        """,
            gpu=H200,
        )
    )
    assert any("has no shape rule" in t for t in texts(ran, "kernel"))


@pytest.mark.parametrize(
    "define",
    [
        'define("unknown(Tensor a) -> Tensor")',
        'define("unknown(Tensor a) -> Tensor", CPU=lambda a: a[: int(a.flatten()[0].item() * 0 + len(a) ** 0.5)].clone())',  # a root
        'define("unknown(Tensor a) -> Tensor", CPU=lambda a: a.new_empty(a.size(0).bit_length()))',
    ],
)
def test_what_nobody_can_tell_is_a_sentence_with_the_line_and_no_verdict(dry_run, define):
    ran = dry_run(
        OWN
        + f"        {define}\n        x = torch.randn(100000, 640, device='cuda')\n        torch.ops.mine.unknown(x)\n"
    )
    assert ran.status == 1 and ran.summary["unplanned"]["line"].endswith("program.py:15")
    assert "mine::unknown is not known to a dry run" in ran.summary["unplanned"]["text"]
    assert "--op-memory 'mine::unknown=SIZE,like=0'" in ran.summary["unplanned"]["text"]


TOLD = [
    ({"op": "mine::told", "scratch_bytes": 1 << 30, "results": []}, (640, 64), "float32"),
    ({"op": "mine::told", "scratch_bytes": 0, "results": [{"like": 1, "dtype": "float16"}]}, (7,), "float16"),
    ({"op": "mine::told", "scratch_bytes": 0, "results": [{"shape": ["0.0", "2*0.1", "3"]}]}, (640, 128, 3), "float32"),
]


@pytest.mark.parametrize("told, shape, dtype", TOLD)
def test_what_the_user_tells_is_taken(dry_run, told, shape, dtype):
    ran = good(
        dry_run(
            OWN
            + f"""
        define("told(Tensor a, Tensor b) -> Tensor")
        peak, y = took(lambda: torch.ops.mine.told(torch.randn(640, 64, device="cuda"), torch.randn(7, device="cuda")))
        assert y.shape == {shape} and y.dtype is torch.{dtype}, (y.shape, y.dtype)
        assert peak // (1 << 30) == {told["scratch_bytes"] >> 30}
        """,
            op_memory=[told],
        )
    )
    (note,) = [n for n in ran.notes() if n["kind"] == "instead"]
    assert note["verdict"] == "with sizes told by --op-memory"


def test_what_the_user_tells_wrongly_is_a_sentence(dry_run):
    told = {"op": "mine::told", "scratch_bytes": 0, "results": [{"like": 5}]}
    ran = dry_run(
        OWN + '        define("told(Tensor a) -> Tensor")\n        torch.ops.mine.told(torch.ones(3, device="cuda"))\n',
        op_memory=[told],
    )
    assert "by an operand or dimension that it does not have" in ran.summary["unplanned"]["text"]


def test_scratch_that_does_not_fit_is_an_out_of_memory(dry_run):
    told = {"op": "mine::told", "scratch_bytes": 20 << 30, "results": []}
    ran = dry_run(
        OWN + '        define("told(Tensor a) -> Tensor")\n        torch.ops.mine.told(torch.ones(3, device="cuda"))\n',
        op_memory=[told],
    )
    assert ran.summary["exception"]["type"] == "OutOfMemoryError"


def test_boxes_that_values_drop_are_counted_as_kept(dry_run):
    ran = good(
        dry_run("""
        import torch
        library = torch.library.Library("torchvision", "DEF")
        library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        boxes = torch.rand(5000, 4, device="cuda")
        kept = torch.ops.torchvision.nms(boxes, boxes[:, 0], 0.5)
        assert kept.shape == (5000,) and kept.dtype is torch.int64 and boxes[kept].shape == (5000, 4)
        """)
    )
    assert any(t.endswith("the most there can be") for t in texts(ran, "value"))


# --- libraries


FLASH = """
        import torch
        from flash_attn import flash_attn_func, flash_attn_varlen_func
        from flash_attn.bert_padding import pad_input, unpad_input
        q, k, v = (torch.randn(2, 1024, 8, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
        before = torch.cuda.memory_allocated()
        out = flash_attn_func(q, k, v, causal=True)
        kept = torch.cuda.memory_allocated() - before
        assert out.shape == q.shape and 0 <= kept - (q.numel() * 2 + 2 * 8 * 1024 * 4) <= 2048, kept
        out.sum().backward()
        assert q.grad.shape == q.shape
        rows = torch.randn(300, 8, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
        ends = torch.tensor([0, 100, 300], dtype=torch.int32, device="cuda")
        flash_attn_varlen_func(rows, rows, rows, ends, ends, 200, 200).sum().backward()
        assert rows.grad.shape == rows.shape
        mask = torch.ones(2, 64, dtype=torch.int64, device="cuda")
        mask[0, 32:] = 0
        packed, indices, ends, most, *_ = unpad_input(torch.randn(2, 64, 16, device="cuda"), mask)
        assert packed.shape == (96, 16) and most == 64 and pad_input(packed, indices, 2, 64).shape == (2, 64, 16)
"""


def test_a_library_that_is_not_installed_has_a_stand_in_and_the_verdict_says_so(dry_run):
    ran = good(dry_run(FLASH, gpu=H200))
    (note,) = [n for n in ran.notes() if n["kind"] == "instead"]
    assert note["verdict"] == "with a stand-in for flash_attn" and "version 2.8.3" in note["text"]


def test_it_refuses_what_the_library_refuses(dry_run):
    ran = dry_run(FLASH, gpu=T4)
    assert ran.status == 1 and "FlashAttention only supports Ampere GPUs or newer." in ran.err


@pytest.mark.parametrize(
    "guard",
    [
        "try:\n    import flash_attn\nexcept ImportError:\n    flash_attn = None",
        "try:\n    import flash_attn\nexcept Exception:\n    flash_attn = None",
        "import importlib.util\nflash_attn = importlib.util.find_spec('flash_attn')",
        "def load():\n    import flash_attn\ntry:\n    flash_attn = load()\nexcept (ImportError, OSError):\n    flash_attn = None",
    ],
)
def test_a_program_that_can_do_without_a_library_does(dry_run, guard):
    ran = good(dry_run(f"import torch\n{guard}\nassert flash_attn is None\ntorch.ones(3, device='cuda')\n"))
    assert not texts(ran, "instead")


def test_parts_that_a_stand_in_does_not_have_are_a_sentence(dry_run):
    ran = dry_run("import torch, flash_attn\nflash_attn.flash_attn_something(torch.ones(3, device='cuda'))\n", gpu=H200)
    assert "flash_attn.flash_attn_something is not known to a dry run" in ran.summary["unplanned"]["text"]


def test_kernels_of_triton_are_not_launched_and_take_nothing(dry_run):
    ran = good(
        dry_run("""
        import torch, triton
        import triton.language as tl

        @triton.autotune(configs=[triton.Config({"BLOCK": 128}, num_warps=4)], key=["n"])
        @triton.jit
        def add(a, b, out, n, BLOCK: tl.constexpr):
            at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + at, tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n), mask=at < n)

        x = torch.ones(1000, device="cuda")
        out = torch.zeros_like(x)
        before = torch.cuda.memory_allocated()
        add[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, x, out, 1000)
        assert torch.cuda.memory_allocated() == before and out.shape == (1000,)
        assert triton.cdiv(5, 2) == 3 and triton.next_power_of_2(9) == 16
    """)
    )
    assert any("triton kernels were not launched" in t for t in texts(ran, "kernel"))


def test_native_functions_of_bitsandbytes_do_nothing_and_its_own_code_runs(dry_run, tmp_path):
    """A library of the same build: kernels in Python that allocate, and hand addresses to a native library that cannot be loaded."""
    package = tmp_path / "bitsandbytes"
    package.mkdir()
    (package / "__init__.py").write_text("from . import ops\n")
    (package / "cextension.py").write_text(
        "import logging\nlogging.getLogger(__name__).error('no CUDA here')\n"
        "class Missing:\n    def __getattr__(self, name):\n        raise RuntimeError('native code')\nlib = Missing()\n"
    )
    (package / "ops.py").write_text(
        """
import ctypes, torch
from .cextension import lib
torch.library.define("bitsandbytes::halve", "(Tensor x) -> Tensor")
@torch.library.impl("bitsandbytes::halve", "CUDA")
def halve(x):
    scratch, out = torch.empty_like(x), torch.empty(x.numel() // 2, dtype=torch.uint8, device=x.device)
    lib.chalve.argtypes = [ctypes.c_void_p] * 3
    assert lib.chalve(x.data_ptr(), scratch.data_ptr(), out.data_ptr()) == 0
    return out
def paged(size):
    pointer = lib.cget_managed_ptr(ctypes.c_size_t(size))
    return (ctypes.c_char * size).from_address(pointer)
"""
    )
    ran = good(
        dry_run(
            OWN
            + """
        import bitsandbytes
        x = torch.randn(1 << 20, device="cuda")
        peak, y = took(lambda: torch.ops.bitsandbytes.halve(x))
        assert y.shape == (1 << 19,) and y.dtype is torch.uint8 and peak == (4 << 20) + (1 << 19), peak
        assert took(lambda: bitsandbytes.ops.paged(5 << 20)[-1])[0] == 0
        """
        )
    )
    assert "no CUDA here" not in ran.err
    assert any("paged optimizer state of bitsandbytes (5.00 MiB)" in t for t in texts(ran, "mode"))
