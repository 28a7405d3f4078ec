"""Sparse and nested tensors, and types that few programs use. Figures marked so are an H200's (PyTorch 2.11); shapes are the CPU's own."""

import pytest
from dry import H200

torch = pytest.importorskip("torch")

MEASURE = """
        import torch, torch.nn.functional as F
        from torch import nn
        def near(name, call, peak, kept, slack=0.02):
            call()  # libraries take what they keep
            torch.cuda.empty_cache()
            before = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            result = call()
            found = torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before
            for a, b in zip(found, (peak, kept)):
                whole_block = 1 << 20 if b >= 4 << 20 else 0  # a rest of less than 1 MiB is not split off
                assert abs(a - b) <= max(4096, slack * b, whole_block), (name, found, (peak, kept))
            return result
"""


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def test_sparse_tensors_take_what_they_take_on_a_gpu(dry_run):
    """Peak above the operands and what stays, measured: 100,000 elements of which 99,708 are different, 4096 × 4096."""
    ran = good(
        dry_run(
            MEASURE
            + """
        i = torch.randint(0, 4096, (2, 100000), device="cuda")
        s = torch.sparse_coo_tensor(i, torch.randn(100000, device="cuda"), (4096, 4096))
        assert s.is_sparse and s.layout is torch.sparse_coo and s.shape == (4096, 4096) and s._nnz() == 100000 and not s.is_coalesced()
        c, d, m, e = s.coalesce(), torch.randn(4096, 256, device="cuda"), torch.randn(4096, 4096, device="cuda"), torch.randn(1024, 1024, device="cuda")
        r = c.to_sparse_csr()
        assert c.is_coalesced() and c.indices().shape == (2, c._nnz()) and r.layout is torch.sparse_csr and r.crow_indices().shape == (4097,)
        near("coalesce", lambda: s.clone().coalesce(), 6395392, 1994240)
        near("clone", c.clone, 1994240, 1994240)
        near("to_sparse", e.to_sparse, 42941952, 21970432, 0.05)
        near("to_sparse_csr", e.to_sparse_csr, 31416320, 20980224)
        near("to_dense", c.to_dense, 67108864, 67108864)
        near("to_csr", c.to_sparse_csr, 33280, 33280)
        near("mm", lambda: torch.sparse.mm(c, d), 13999616, 4194304)
        near("mm, not coalesced", lambda: torch.sparse.mm(s.clone(), d), 16995328, 4194304, 0.07)
        near("csr @", lambda: r @ d, 8421888, 4194304)
        near("+", lambda: c + c, 3988480, 3988480)
        near("* 2", lambda: c * 2, 1994240, 1994240)
        near("t().coalesce()", lambda: c.t().coalesce(), 6381568, 1994240)
        near("dense +", lambda: m + c, 67108864, 67108864)
        near("dense +=", lambda: m.add_(c), 0, 0)
        near("sparse_mask", lambda: m.sparse_mask(c), 2393600, 1994240)
        near("sum", lambda: torch.sparse.sum(c, dim=1), 5185536, 814080)
        near("softmax", lambda: torch.sparse.softmax(c, dim=1), 4436480, 1994240)
        host = torch.eye(64).to_sparse()
        assert host.cuda()._nnz() == 64 and host.cuda().cpu().layout is torch.sparse_coo and (host.cuda() @ torch.ones(64, 3, device="cuda")).shape == (64, 3)
        assert torch.eye(64).to_sparse_csr().cuda().to_dense().shape == (64, 64)
        few = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [2, 2, 0]], device="cuda"), torch.ones(3, device="cuda"), (2, 3))
        assert few.coalesce()._nnz() == 2, "values that are known are counted"
        """,
            gpu=H200,
        )
    )
    assert any("coalesce() of 100000 unknown indices" in note["text"] for note in ran.notes())


def test_sparse_gradients_and_their_optimizers_work(dry_run):
    good(
        dry_run(
            MEASURE
            + """
        table = nn.Embedding(10000, 64, sparse=True).cuda()
        ids = torch.randint(0, 10000, (64, 128), device="cuda")
        for kind in (torch.optim.SparseAdam, torch.optim.SGD, torch.optim.Adagrad):
            optimizer = kind(table.parameters(), lr=0.1)
            for _ in range(2):
                optimizer.zero_grad()
                table(ids).sum().backward()
                optimizer.step()
            assert table.weight.grad.is_sparse and table.weight.grad._nnz() == 64 * 128
        c = torch.sparse_coo_tensor(torch.randint(0, 512, (2, 1000), device="cuda"), torch.randn(1000, device="cuda"), (512, 512)).coalesce()
        d = torch.randn(512, 16, device="cuda", requires_grad=True)
        torch.sparse.mm(c, d).sum().backward()
        assert d.grad.shape == (512, 16)
        w = c.clone().requires_grad_()
        torch.sparse.mm(w, d.detach()).sum().backward()
        assert w.grad.shape == (512, 512) and w.grad.is_sparse
        """,
            gpu=H200,
        )
    )


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_nested_tensors_take_what_they_hold_and_not_their_padding(dry_run, layout):
    if not hasattr(torch, "jagged"):
        pytest.skip("no jagged layout in this release")
    ran = good(
        dry_run(
            MEASURE
            + f"""
        rows = (100, 37, 200, 64)
        parts = [torch.randn(n, 256, device="cuda") for n in rows]
        t = torch.nested.as_nested_tensor(parts, layout=torch.{layout})
        linear, norm = nn.Linear(256, 512).cuda(), nn.LayerNorm(256).cuda()
        own = sum(rows) * 256 * 4
        near("make", lambda: torch.nested.as_nested_tensor(parts, layout=torch.{layout}), 413696, 411136)
        near("from the host", lambda: torch.nested.nested_tensor([p.cpu() for p in parts], layout=torch.{layout}, device="cuda"), 413696, 411136)
        near("padded", lambda: torch.nested.to_padded_tensor(t, 0.0), 819200, 4 * 200 * 256 * 4)
        near("linear", lambda: linear(t), 821248, 2 * own)
        near("gelu", lambda: F.gelu(t), own, own)
        near("layer norm", lambda: norm(t), 414720, 414720)
        near("add", lambda: t + t, own, own)
        near("sdpa", lambda: (lambda z: F.scaled_dot_product_attention(z, z, z))(t.half().unflatten(-1, [4, 64]).transpose(1, 2)), 419328, 205312)
        y = linear(t)
        y.to_padded_tensor(0.0).sum().backward()
        assert linear.weight.grad.shape == (512, 256) and [p.shape for p in t.unbind()] == [p.shape for p in parts]
        """,
            gpu=H200,
        )
    )
    assert any("planned as jagged ones" in note["text"] for note in ran.notes()) == (layout == "strided")


TYPES = {
    "x.to(torch.float8_e4m3fn)": 1,
    "x.to(torch.float8_e5m2).to(torch.bfloat16)": 2,
    "torch.fft.fft2(x)": 8,
    "torch.complex(x, x).abs()": 4,
    "torch.polar(x, x)": 8,
    "x.to(torch.int8)": 1,
    "torch._int_mm(x.to(torch.int8), x.to(torch.int8))": 4,
    "torch.zeros(1024, 1024, dtype=torch.uint8, device='cuda')": 1,
    "torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)": 4,
    "torch.view_as_real(torch.complex(x, x)).clone()": 8,
}


def test_types_have_their_sizes(dry_run):
    cases = "".join(f"            ({text!r}, lambda: {text}, {size}),\n" for text, size in TYPES.items())
    good(
        dry_run(
            MEASURE
            + f"""
        x = torch.rand(1024, 1024, device="cuda")
        torch._int_mm(x.to(torch.int8), x.to(torch.int8))  # the library takes what it keeps
        for name, call, size in (
{cases}        ):
            result = None
            before = torch.cuda.memory_allocated()
            result = call()
            kept = torch.cuda.memory_allocated() - before
            assert kept == size << 20, (name, kept)
        """,
            gpu=H200,
        )
    )


def test_tensors_that_are_made_of_others_take_what_those_take(dry_run):
    """As torchao's: eight bits and a scale for each row, which stand for floats."""
    good(
        dry_run(
            MEASURE
            + """
        class Eight(torch.Tensor):
            @staticmethod
            def __new__(cls, bits, scale):
                return torch.Tensor._make_wrapper_subclass(cls, bits.shape, dtype=scale.dtype, device=bits.device)
            def __init__(self, bits, scale):
                self.bits, self.scale = bits, scale
            def __tensor_flatten__(self):
                return ["bits", "scale"], None
            @classmethod
            def __tensor_unflatten__(cls, parts, _meta, _size, _stride):
                return cls(parts["bits"], parts["scale"])
            def whole(self):
                return self.bits * self.scale[:, None]
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                if func is torch.ops.aten.detach.default:
                    return cls(args[0].bits, args[0].scale)
                if func is torch.ops.aten._to_copy.default:
                    return cls(args[0].bits.to(kwargs["device"]), args[0].scale.to(kwargs["device"]))
                return func(*(a.whole() if isinstance(a, Eight) else a for a in args), **(kwargs or {}))

        weight = torch.randn(4096, 1024)
        linear = nn.Linear(1024, 4096, bias=False)
        linear.weight = nn.Parameter(Eight((weight * 40).to(torch.int8), weight.abs().amax(1)), requires_grad=False)
        before = torch.cuda.memory_allocated()
        linear.cuda()
        assert torch.cuda.memory_allocated() - before == 4096 * 1024 + 4096 * 4 and linear.weight.is_cuda
        x = torch.randn(8, 1024, device="cuda")
        near("forward", lambda: linear(x), 4096 * 1024 * 4 + 8 * 4096 * 4, 8 * 4096 * 4)
        """,
            gpu=H200,
        )
    )
