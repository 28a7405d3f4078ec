"""torch.compile, flex_attention, CUDA graphs and pools of memory. The figures are an H200's, PyTorch 2.11, where they are not arithmetic."""

import pytest
from dry import H200

torch = pytest.importorskip("torch")

MLP = """
        import torch
        from torch import nn
        model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Dropout(0.1), nn.Linear(2048, 512), nn.LayerNorm(512)).cuda()
        x = torch.randn(4096, 512, device="cuda")
"""


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def notes(ran, kind):
    return [note for note in ran.notes() if note["kind"] == kind]


@pytest.mark.parametrize(
    "how",
    [
        "model = torch.compile(model)",
        "model = torch.compile(model, mode='reduce-overhead')",
        "model = torch.compile(model, backend='aot_eager', dynamic=True)",
        "model.compile()",
        "run = torch.compile(model.forward); model.forward = run",
    ],
)
def test_a_compiled_program_is_planned_eagerly_and_the_verdict_says_so(dry_run, how):
    ran = good(dry_run(MLP + f"        {how}\n        model(x).sum().backward()\n"))
    (told,) = notes(ran, "instead")
    assert told["verdict"] == "run eagerly instead of compiled" and told["line"].endswith("program.py:6")
    assert ("CUDA graphs" in told["text"]) == ("reduce-overhead" in how)


@pytest.mark.parametrize(
    "how",
    [
        "",
        "model = torch.compile(model, backend='eager')",
        "model = torch.compile(model, disable=True)",
        "torch.compile(lambda t: t + 1)(torch.ones(3))",  # on the host
        "torch.compile(model)",  # and never called
    ],
)
def test_nothing_is_said_where_what_runs_is_what_was_planned(dry_run, how):
    ran = good(dry_run(MLP + f"        {how}\n        model(x).sum().backward()\n"))
    assert not notes(ran, "instead")


def test_a_compiled_module_looks_like_one_and_what_it_would_keep_is_estimated(dry_run):
    ran = good(
        dry_run(
            MLP
            + """
        compiled = torch.compile(model)
        assert isinstance(compiled, torch._dynamo.eval_frame.OptimizedModule) and compiled._orig_mod is model
        assert list(compiled.state_dict())[0] == "_orig_mod.0.weight"
        compiled(x).sum().backward()
        assert model[0].weight.grad is not None
        """,
            gpu=H200,
            estimate_seconds=300,
        )
    )
    (said,) = [n["text"] for n in notes(ran, "mode") if "an estimate" in n["text"]]
    assert "Sequential keeps 88.03 MiB eagerly" in said and "compiled it would keep about 88.03 MiB" in said


FLEX = """
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        B, H, S, D = 2, 4, 1024, 64
        q, k, v = (torch.randn(B, H, S, D, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3))
        mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, S, S)
        assert mask.kv_num_blocks.shape == (1, 1, 8)
        def kept(attend, score=lambda s, b, h, i, j: s + (i - j) * 0.1):
            for _ in range(2):  # the first time libraries take what they keep
                q.grad = k.grad = v.grad = None
                before = torch.cuda.memory_allocated()
                torch.cuda.reset_peak_memory_stats()
                out = attend(q, k, v, score_mod=score, block_mask=mask)
                assert out.shape == q.shape
                forward = torch.cuda.max_memory_allocated() - before
                after = torch.cuda.memory_allocated() - before
                out.sum().backward()
                assert q.grad.shape == q.shape and v.grad.shape == v.shape
                backward = torch.cuda.max_memory_allocated() - before
                del out
            return after, forward, backward
"""


def test_flex_attention_makes_the_scores_eagerly_and_not_compiled(dry_run):
    pytest.importorskip("torch.nn.attention.flex_attention")
    ran = good(
        dry_run(
            FLEX
            + """
        rows = B * H * S
        after, forward, backward = kept(flex_attention)
        assert forward > 3 * rows * S * 4 and backward > 5 * rows * S * 4, (after, forward, backward)
        after, forward, backward = kept(torch.compile(flex_attention))
        assert after == rows * (D * 2 + 4) == 1081344 and forward == after + rows * 4 == 1114112, (after, forward)
        assert backward < 6 << 20, backward  # 5,309,440
        bias = torch.zeros(H, device="cuda", requires_grad=True)
        for attend in (flex_attention, torch.compile(flex_attention)):
            bias.grad = None
            kept(attend, lambda s, b, h, i, j: s + bias[h])
            assert bias.grad.shape == (H,)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        torch.compile(create_block_mask)(lambda b, h, i, j: i >= j, None, None, 8192, 8192)
        assert torch.cuda.max_memory_allocated() - before < 8192 * 8192
        create_block_mask(lambda b, h, i, j: i >= j, None, None, 8192, 8192)
        assert torch.cuda.max_memory_allocated() - before > 8192 * 8192
        """,
            gpu=H200,
        )
    )
    texts = [n["text"] for n in ran.notes()]
    assert any("without torch.compile: planned as PyTorch runs it then" in t for t in texts)
    assert any("flex_attention was planned as compiled" in t for t in texts)


def test_graphs_and_pools_keep_what_they_took_until_they_end(dry_run):
    good(
        dry_run(
            """
        import torch
        MiB = 1 << 20
        reserved = lambda: (torch.cuda.memory_reserved() - base) / MiB
        f = lambda x: (x * 2 + 1).relu()
        x = torch.randn(MiB, device="cuda")
        f(x)
        torch.cuda.empty_cache()
        base = torch.cuda.memory_reserved()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            assert torch.cuda.is_current_stream_capturing()
            y = f(x)
        assert not torch.cuda.is_current_stream_capturing() and reserved() == 22
        g.replay()
        del y
        torch.cuda.empty_cache()
        assert reserved() == 22
        g.reset()
        torch.cuda.empty_cache()
        assert reserved() == 2
        if not hasattr(torch.cuda, "MemPool"):
            raise SystemExit
        base = torch.cuda.memory_reserved()
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            a = torch.empty(32 * MiB, dtype=torch.uint8, device="cuda")
        assert reserved() == 32 and pool.use_count() == 1 and len(pool.snapshot()) == 1
        b = torch.empty(32 * MiB, dtype=torch.uint8, device="cuda")
        del a
        c = torch.empty(32 * MiB, dtype=torch.uint8, device="cuda")
        assert reserved() == 96, "what a pool has free is not for others"
        with torch.cuda.use_mem_pool(pool):
            a = torch.empty(32 * MiB, dtype=torch.uint8, device="cuda")
        assert reserved() == 96
        del a, b, c
        torch.cuda.empty_cache()
        assert reserved() == 32
        del pool
        assert reserved() == 0
        """,
            gpu=H200,
        )
    )


def test_graphed_callables_train(dry_run):
    good(
        dry_run("""
        import torch
        model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
        sample = torch.randn(64, 256, device="cuda", requires_grad=True)
        graphed = torch.cuda.make_graphed_callables(model, (sample,))
        out = graphed(torch.randn(64, 256, device="cuda", requires_grad=True))
        out.sum().backward()
        assert out.shape == (64, 256) and model[0].weight.grad.shape == (1024, 256)
        handle = torch.cuda.graph_pool_handle()
        first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(first, pool=handle):
            a = model(sample)
        with torch.cuda.graph(second, pool=first.pool()):
            b = model(a)
        first.replay()
        second.replay()
    """)
    )
