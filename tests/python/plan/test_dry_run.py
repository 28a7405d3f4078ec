"""The dry run as a program sees it: the GPU that is not there behaves like one."""

import re
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

MIB = 1 << 20
OUT_OF_MEMORY = torch.cuda.OutOfMemoryError  # torch.OutOfMemoryError since 2.4
PASSES_CONTEXT = "_stash_obj_in_tls" in Path(torch.autograd.graph.__file__).read_text()


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def test_tensors_are_plain_and_parameters_keep_their_identity(dry_run):
    good(
        dry_run("""
        import torch
        x = torch.empty(4, 4, device="cuda")
        assert type(x) is torch.Tensor and x.is_cuda and str(x.device) == "cuda:0" and x.data_ptr() != 0
        model = torch.nn.Linear(8, 8)
        before = model.weight
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        model.to("cuda")
        assert model.weight is before and before.is_cuda and isinstance(before, torch.nn.Parameter)
        tied = torch.nn.ModuleList([torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False)])
        tied[1].weight = tied[0].weight
        tied.cuda()
        assert tied[0].weight is tied[1].weight
    """)
    )


def test_memory_is_that_of_pytorchs_allocator(dry_run):
    ran = good(
        dry_run("""
        import torch
        x = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
        y = torch.empty(100, device="cuda")
        assert torch.cuda.memory_allocated() == (3 << 20) + 512, torch.cuda.memory_allocated()
        assert torch.cuda.memory_reserved() == (20 << 20) + (2 << 20)
        view = x[: 1 << 20].view(1024, 1024)
        del x
        assert torch.cuda.memory_allocated() == (3 << 20) + 512
        del view
        assert torch.cuda.memory_allocated() == 512 and torch.cuda.max_memory_allocated() == (3 << 20) + 512
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 2 << 20
        free, total = torch.cuda.mem_get_info()
        assert total == 15828320256 and free == total - (640 << 20) - (2 << 20)
        assert "CUDA OOMs: 0" in torch.cuda.memory_summary()
        assert torch.cuda.get_device_name() == "Tesla T4" and torch.cuda.get_device_capability() == (7, 5) and torch.cuda.device_count() == 1
        assert torch.cuda.get_device_properties(0).multi_processor_count == 40 and not torch.cuda.is_bf16_supported(including_emulation=False)
        assert sum(b["size"] for s in torch.cuda.memory_snapshot() for b in s["blocks"]) == 2 << 20
    """)
    )
    assert ran.summary["peak_allocated"] == 3 * MIB + 512


def test_values_from_the_programs_own_data_stay_exact(dry_run):
    ran = good(
        dry_run("""
        import numpy, torch
        lengths = torch.tensor([3, 7, 5]).cuda()
        assert lengths.max().item() == 7 and (lengths > 4).sum().item() == 2
        mask = torch.arange(8, device="cuda")[None, :] < lengths[:, None]
        assert mask.sum(1).tolist() == [3, 7, 5]
        x = torch.randn(3, 8, device="cuda")
        assert x[mask].shape == (15,) and mask.nonzero().shape == (15, 2)
        ids = torch.from_numpy(numpy.arange(4096)).to("cuda")
        assert int(ids[17]) == 17 and torch.unique(ids % 5).numel() == 5
        ids[3] = 99
        assert ids.cpu()[3] == 99
    """)
    )
    assert [note for note in ran.notes() if note["kind"] == "value"] == []


def test_a_value_that_nobody_can_know_is_noted_at_its_line(dry_run):
    ran = good(
        dry_run("""
        import torch
        a, b = torch.empty(2, 4096, 4096, device="cuda")
        print(torch.equal(a @ b, b @ a))
    """)
    )
    assert [note["line"].endswith("program.py:4") for note in ran.notes() if note["kind"] == "value"] == [True], (
        ran.notes()
    )


def test_values_that_cannot_be_known_are_stand_ins_and_noted(dry_run):
    ran = good(
        dry_run("""
        import torch
        x = torch.randn(4096, 64, device="cuda")
        loss = x.pow(2).mean()
        assert not torch.isnan(loss) and torch.isfinite(loss) and loss.item() == 1.0
        assert not torch.isnan(x).any() and torch.isfinite(x).all()
        assert x.cpu().shape == x.shape and x.argmax(1).cpu().dtype == torch.int64
    """)
    )
    noted = {note["line"].rpartition("/")[2] for note in ran.notes() if note["kind"] == "value"}
    assert noted == {"program.py:5", "program.py:6", "program.py:7"}, ran.notes()


def test_an_out_of_memory_is_raised_where_the_gpu_would_and_can_be_caught(dry_run):
    ran = good(
        dry_run("""
        import torch
        batch, tried = 64, []
        while True:
            try:
                tried.append(batch)
                x = torch.empty(batch, 256 << 20, dtype=torch.uint8, device="cuda")
                break
            except torch.cuda.OutOfMemoryError as problem:
                assert "CUDA out of memory. Tried to allocate 16.00 GiB" in str(problem) or batch < 64
                batch //= 2
        assert tried == [64, 32], tried
    """)
    )
    assert ran.summary["ooms"] == 1 and ran.summary["exception"] is None
    assert "memory/out-of-memory" in ran.rules()


def test_an_out_of_memory_ends_the_program_with_its_line(dry_run):
    ran = dry_run("""
        import torch
        kept = [torch.empty(4 << 30, dtype=torch.uint8, device="cuda") for _ in range(3)]
        more = torch.empty(4 << 30, dtype=torch.uint8, device="cuda")
    """)
    assert ran.status == 1 and f"{OUT_OF_MEMORY.__module__}.OutOfMemoryError" in ran.err
    assert ran.summary["exception"]["line"] == 4 and ran.summary["exception"]["type"] == "OutOfMemoryError"
    finding = next(f for f in ran.report()["findings"] if f["rule"] == "memory/out-of-memory")
    assert finding["location"]["line"] == 4 and finding["cause"] == "exhausted"


def test_overcommit_serves_what_the_gpu_could_not(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        kept = [torch.empty(4 << 30, dtype=torch.uint8, device="cuda") for _ in range(5)]
    """,
            overcommit=True,
        )
    )
    assert ran.summary["ooms"] == 1 and ran.summary["peak_reserved"] == 5 * (4 << 30)


TRAINING = """
    import torch, torch.nn as nn
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Dropout(0.1), nn.LayerNorm(2048), nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.{optimizer}
    scaler = (getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler)()
    for step in range(3):
        x, y = torch.randn(256, 512, device="cuda"), torch.randint(10, (256,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(x)
            assert out.dtype == torch.float16
            loss = nn.functional.cross_entropy(out, y)
        assert loss.dtype == torch.float32
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert all(p.grad is not None and p.grad.is_cuda for p in model.parameters())
"""


@pytest.mark.parametrize(
    "optimizer",
    [
        "AdamW(model.parameters(), fused=True)",
        "AdamW(model.parameters(), foreach=False)",
        "SGD(model.parameters(), 0.1, momentum=0.9)",
        "Adagrad(model.parameters())",
    ],
)
def test_training_with_autocast_and_a_scaler_steps(dry_run, optimizer):
    ran = good(dry_run(TRAINING.replace("{optimizer}", optimizer)))
    assert ran.summary["steps"] == 3 and "autocast" in ran.summary["uses"]
    assert ran.rules() == set()


def test_backward_allocations_know_their_forward_line_and_their_step(dry_run, binary):
    ran = good(
        dry_run("""
        import torch
        w = torch.randn(1024, 1024, device="cuda", requires_grad=True)
        optimizer = torch.optim.SGD([w], 0.1)
        x = torch.randn(512, 1024, device="cuda")
        y = (x @ w).relu()
        y.sum().backward()
        optimizer.step()
    """)
    )
    text = subprocess.run(
        [binary, "explain", str(ran.traces[0]), "--format", "text-trace"], capture_output=True, text=True, check=True
    ).stdout
    stacks = dict(re.findall(r"^stack (\S+) = (.*)$", text, re.M))
    (tensor,) = re.findall(r"^tensor (\S+) = \S+ op=aten::threshold_backward", text, re.M)
    (alloc,) = re.findall(rf"^alloc .* tensor={tensor} stack=(\S+)", text, re.M)
    (note,) = re.findall(rf"^tensor-note .* tensor={tensor} stack=(\S+)", text, re.M)
    assert "program.py:6 " in stacks[note], stacks[note]  # (x @ w).relu()
    while alloc not in ("", note) and "program.py:" not in stacks[alloc]:
        alloc = stacks[alloc].partition(" > ")[0]
    assert "program.py:7 " in stacks[alloc], stacks[alloc]  # backward()
    assert len(re.findall(r"^step .*Optimizer\.step#SGD\.step", text, re.M)) == 1


def test_checkpointing_recomputes_and_saves_memory(dry_run, tmp_path_factory, binary):
    from dry import dry_run as run

    program = """
        import torch
        from torch.utils.checkpoint import checkpoint
        layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)) for _ in range(6)).cuda()
        x = torch.randn(4096, 1024, device="cuda", requires_grad=True)
        y = x
        for layer in layers:
            y = checkpoint(layer, y, use_reentrant=False) if {on} else layer(y)
        y.sum().backward()
    """
    peaks = [
        good(run(binary, tmp_path_factory.mktemp("run"), program.replace("{on}", on))).summary["peak_allocated"]
        for on in ("True", "False")
    ]
    assert peaks[0] < 0.6 * peaks[1]


@pytest.mark.skipif(
    not PASSES_CONTEXT, reason="this PyTorch does not hand the caller's context to its backward threads; 2.13 does"
)
def test_the_end_waits_for_the_backward_threads_to_let_go_of_the_pass(dry_run):
    """What they drop during the interpreter's shutdown aborts the process. On one core it is late every few passes."""
    good(
        dry_run("""
        import os, sys, weakref
        import torch
        from faultline.plan.torch import dry_run_session
        stash = torch._C._stash_obj_in_tls
        def noted(name, value):
            global held
            held = weakref.ref(value)
            stash(name, value)
        torch._C._stash_obj_in_tls = noted
        os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])
        sys.setswitchinterval(10)
        x = torch.ones(8, device="cuda", requires_grad=True)
        for _ in range(200):
            (x * 2).sum().backward()
            dry_run_session._settle_backward_threads()
            assert held() is None
    """)
    )


def test_a_plan_can_change_the_program(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)
            def forward(self, x):
                return x + self.down(torch.relu(self.up(x)))
        model = torch.nn.Sequential(*(Block() for _ in range(4))).cuda()
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(2):
            out = model(torch.randn(64, 256, device="cuda"))
            print(out.dtype)
            out.float().sum().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    """,
            changes={"autocast": "float16", "checkpoint": True, "foreach": False, "set_to_none": True},
        )
    )
    assert ran.out.split() == ["torch.float32"] * 2  # x stays as it is, and float32 + float16 is float32
    assert (
        set(ran.summary["changes"]) == {"autocast", "checkpoint", "foreach", "set_to_none"}
        and "4 × Block" in ran.summary["changes"]["checkpoint"]
    )


@pytest.mark.parametrize(
    "source, what",
    [
        ("batch_size = 8", "batch_size = …"),
        (
            "import argparse\n        p = argparse.ArgumentParser()\n        p.add_argument('--batch-size', type=int, default=8)\n        batch_size = p.parse_args().batch_size",
            "default of --batch_size",
        ),
        ("config = {'batch_size': 8}\n        batch_size = config['batch_size']", "'batch_size': …"),
        ("def f(batch_size=8):\n            return batch_size\n        batch_size = f()", "default of batch_size"),
    ],
)
def test_the_programs_own_constant_can_be_varied(dry_run, source, what):
    ran = good(
        dry_run(
            f"""
        {source}
        import torch
        print(torch.empty(batch_size, 1024, device="cuda").shape[0], __file__, __name__)
    """,
            vary={"name": "batch_size", "value": 24},
            cold=True,
        )
    )
    assert ran.out.split()[0] == "24" and ran.out.split()[2] == "__main__"
    found = ran.summary["vary"]["found"]
    assert [f["value"] for f in found] == [8] and found[0]["what"] == what and found[0]["file"].endswith("program.py")


def test_pinned_loaders_streams_events_and_graphs_work(dry_run):
    ran = good(
        dry_run("""
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == "__main__":
            loader = DataLoader(TensorDataset(torch.randn(64, 16), torch.arange(64)), batch_size=16, num_workers=2, pin_memory=True)
            seen = 0
            for x, y in loader:
                assert x.is_pinned()
                seen += int(y.cuda(non_blocking=True).sum())
                x = x.cuda(non_blocking=True)
            assert seen == 64 * 63 // 2
            side, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            with torch.cuda.stream(side):
                z = torch.ones(8, device="cuda") * 2
                z.record_stream(torch.cuda.current_stream())
            torch.cuda.current_stream().wait_stream(side)
            end.record()
            torch.cuda.synchronize()
            assert start.elapsed_time(end) >= 0 and z.sum().item() == 16
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = z * 2
            graph.replay()
    """)
    )
    assert len(ran.traces) == 1


def test_recurrent_and_channels_last_networks_run(dry_run):
    good(
        dry_run("""
        import torch, torch.nn as nn
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
        lstm = nn.LSTM(32, 64, 2, batch_first=True, bidirectional=True, dropout=0.1).cuda()
        out, (h, c) = lstm(torch.randn(8, 20, 32, device="cuda"))
        assert out.shape == (8, 20, 128) and h.shape == (4, 8, 64)
        out.sum().backward()
        packed = pack_padded_sequence(torch.randn(3, 9, 32, device="cuda"), torch.tensor([9, 5, 2]), batch_first=True)
        states, lengths = pad_packed_sequence(lstm(packed)[0], batch_first=True)
        assert states.shape == (3, 9, 128) and lengths.tolist() == [9, 5, 2]
        net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(True), nn.MaxPool2d(2)).cuda().to(memory_format=torch.channels_last)
        y = net(torch.randn(4, 3, 32, 32, device="cuda").to(memory_format=torch.channels_last))
        assert y.is_contiguous(memory_format=torch.channels_last)
        y.sum().backward()
    """)
    )


def test_a_hugging_face_model_trains_and_generates(dry_run):
    pytest.importorskip("transformers")
    ran = good(
        dry_run("""
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel
        model = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000)).to("cuda")
        ids = torch.randint(1000, (2, 64), device="cuda")
        model(input_ids=ids, labels=ids).loss.backward()
        with torch.no_grad():
            out = model.generate(ids[:, :8], max_new_tokens=12, do_sample=False, pad_token_id=0, eos_token_id=None)
        assert out.shape == (2, 20)
    """)
    )
    assert ran.rules() == set()


def test_compile_is_run_eagerly_and_said(dry_run):
    ran = good(
        dry_run("""
        import torch
        model = torch.compile(torch.nn.Linear(8, 8).cuda())
        model(torch.randn(2, 8, device="cuda"))
        @torch.compile
        def double(x): return x * 2
        double(torch.ones(2, device="cuda"))
    """)
    )
    assert b"torch.compile was not applied" in ran.traces[0].read_bytes()


def test_nothing_is_saved(dry_run, tmp_path):
    checkpoint = tmp_path / "model.pt"
    checkpoint.write_text("precious")
    good(
        dry_run("""
        import torch
        torch.save(torch.nn.Linear(4, 4).cuda().state_dict(), "model.pt")
    """)
    )
    assert checkpoint.read_text() == "precious"


def test_the_programs_own_exception_is_kept_with_its_line(dry_run):
    ran = dry_run("""
        import torch
        x = torch.empty(1 << 20, device="cuda")
        raise ValueError("no such dataset")
    """)
    assert ran.status == 1 and ran.summary["exception"] == {
        "type": "ValueError",
        "message": "no such dataset",
        "file": ran.summary["exception"]["file"],
        "line": 4,
        "function": "<module>",
    }


def test_a_program_that_leaves_another_default_device_ends_like_any_other(dry_run):
    ran = good(
        dry_run("""
        import torch
        x = torch.ones(4, 4, device="cuda", requires_grad=True)
        x.sum().backward()
        torch.set_default_device("meta")
    """)
    )
    assert not ran.err and ran.summary["exception"] is None


def test_a_second_gpu_is_refused(dry_run):
    ran = dry_run("""
        import torch
        torch.ones(2).cuda(1)
    """)
    assert ran.status == 1 and "The plan has one GPU" in ran.err and ran.summary["exception"]["line"] == 3


def test_an_extensions_operation_without_a_rule_is_named(dry_run):
    ran = dry_run("""
        import torch
        library = torch.library.Library("mine", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        torch.ops.mine.twice(torch.ones(2, device="cuda"))
    """)
    assert ran.status == 1 and "mine::twice is not known to a dry run" in ran.err and "register_fake" in ran.err


def test_operands_of_different_types_or_devices_are_refused_as_on_a_gpu(dry_run):
    ran = good(
        dry_run("""
        import torch
        a = torch.randn(4, 4, device="cuda")
        for other in (a.half(), torch.randn(4, 4)):
            try:
                a @ other
            except RuntimeError as problem:
                print(str(problem)[:60])
            else:
                raise AssertionError
    """)
    )
    assert ran.out.splitlines()[0].startswith("expected mat1 and mat2 to have the same dtype") and ran.out.splitlines()[
        1
    ].startswith("Expected all tensors to be on the same device")


def test_a_generator_of_another_device_is_refused_as_on_a_gpu(dry_run):
    ran = good(
        dry_run("""
        import torch
        on_gpu, on_host = torch.Generator("cuda"), torch.Generator()
        torch.rand(3, device="cuda", generator=on_gpu); torch.ones(5, device="cuda").multinomial(2, generator=on_gpu)
        torch.rand(3, device="cuda", generator=torch.cuda.default_generators[0])
        torch.rand(3, generator=on_host); torch.rand(3, device="meta", generator=on_host)
        torch.rand(3, device="meta", generator=on_gpu); torch.empty(3, device="meta").normal_(generator=on_gpu)
        for wrong in (
            lambda: torch.rand(3, device="cuda", generator=on_host),
            lambda: torch.zeros(3, device="cuda").normal_(generator=torch.default_generator),
            lambda: torch.randperm(3, generator=on_gpu),
        ):
            try:
                wrong()
            except RuntimeError as problem:
                print(problem)
    """)
    )
    wants_gpu, wants_host = (
        f"Expected a '{wanted}' device type for generator but found '{found}'"
        for wanted, found in (("cuda", "cpu"), ("cpu", "cuda"))
    )
    assert ran.out.splitlines() == [wants_gpu, wants_gpu, wants_host]


def test_the_plan_stops_after_so_many_steps(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        w = torch.zeros(4, device="cuda", requires_grad=True)
        optimizer = torch.optim.SGD([w], 0.1)
        for step in range(10 ** 9):
            w.sum().backward()
            optimizer.step()
    """,
            steps=5,
        )
    )
    assert ran.summary["stopped"] == "after 5 optimizer steps" and ran.summary["steps"] == 5


def test_the_plan_stops_after_so_many_seconds(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        x = torch.zeros(4, device="cuda")
        while True:
            x = x + 1
    """,
            seconds=4,
        )
    )
    assert ran.summary["stopped"] == "after 4 seconds"


def test_real_computes_the_same_numbers_as_the_host(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        def train(device):
            torch.manual_seed(0)
            model = torch.nn.Sequential(torch.nn.Linear(16, 300), torch.nn.ReLU(), torch.nn.Linear(300, 1)).to(device)
            optimizer = torch.optim.SGD(model.parameters(), 0.1)
            x = torch.randn(64, 16)
            for step in range(3):
                loss = model(x.to(device)).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            return loss.item()
        print(train("cuda"), train("cpu"))
    """,
            real=True,
        )
    )
    gpu, cpu = map(float, ran.out.split())
    assert gpu == pytest.approx(cpu, rel=1e-5) and gpu != 1.0


def test_a_model_on_the_host_takes_no_host_memory(dry_run):
    ran = good(
        dry_run("""
        import resource, torch
        model = torch.nn.ModuleList(torch.nn.Linear(8192, 8192) for _ in range(16))
        model.to("cuda")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
    """)
    )
    assert ran.summary["peak_allocated"] >= 16 * 8192 * 8192 * 4 and int(ran.out) < 1500


@pytest.mark.parametrize("touched", ["", "data.add_(1)", "data.numpy()[:] += 1"])
def test_batches_of_large_host_data_are_made_from_it_once(dry_run, touched):
    """Each of their rows stands for a place in data that is made when somebody reads: once for all, unless it has been written into."""
    run = dry_run(f"""
        import torch
        from faultline.plan.torch.dispatch import host_tensors
        torch.empty(1 << 24)  # from here on large tensors wait
        data = torch.randn(4096, 1024)
        batches = [torch.stack([data[row] for row in range(start, start + 256)]) for start in (0, 256, 512)]
        read = batches[0].repeat(1, 1)
        replayed = []
        replay = host_tensors.HostTensors._replay
        host_tensors.HostTensors._replay = lambda self, steps, storage: (replayed.append(storage), replay(self, steps, storage))
        before = batches[1].repeat(1, 1)
        few = len(replayed)
        {touched or "pass"}
        after = batches[2].repeat(1, 1)
        moved = {1 if touched else 0}
        assert torch.equal(before, data[256:512] - moved) if not moved else torch.allclose(before, data[256:512] - 1, atol=1e-5)
        assert torch.allclose(after, data[512:768] - moved, atol=1e-5), "what a batch held when it was made"
        print(few)
        """)
    assert run.status == 0 and run.out == "1\n", run.err + run.out


def test_threads_of_the_program_see_the_same_gpu(dry_run):
    good(
        dry_run("""
        import threading, torch
        found = []
        threads = [threading.Thread(target=lambda: found.append((torch.ones(4, device="cuda") * 2).sum().item())) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert found == [8.0] * 4, found
    """)
    )


def test_a_program_without_pytorch_is_left_alone(dry_run):
    ran = dry_run("print('hello')", cold=True)
    assert ran.status == 0 and ran.out == "hello\n" and ran.summary is None and not ran.traces


@pytest.mark.parametrize("product", ["{a} @ {b}", "torch.addmm(c, {a}, {b})", "torch.bmm({a}[None], {b}[None])"])
@pytest.mark.parametrize("left, copies", [("x[:1].expand(4096, 1024)", 1), ("x[:4096]", 0)])
def test_a_product_copies_its_operands_before_it_asks_for_the_workspace(dry_run, product, left, copies):
    """The copy takes the place that was left, and the workspace a segment of its own: the other way round the workspace splits that place."""
    ran = dry_run(f"""
        import torch
        x, y, c = torch.empty(4096, 1024, device="cuda"), torch.empty(1024, 1024, device="cuda"), torch.empty(1024, device="cuda")
        out = torch.empty(4096, 1024, device="cuda"); del out   # the result's place
        room = [torch.empty(4096, 1024, device="cuda") for _ in range(2)]; room.clear()
        before = torch.cuda.memory_reserved()
        z = {product.format(a=left, b="y")}
        print((torch.cuda.memory_reserved() - before) >> 20)
        """)
    assert ran.status == 0, ran.err[-400:]
    assert int(ran.out) == (20 if copies else 0)


def test_samples_of_distributions_pass_their_own_checks(dry_run):
    good(
        dry_run("""
        import torch
        from torch.distributions import Bernoulli, Categorical, Normal
        logits = torch.nn.Linear(8, 18).cuda()(torch.randn(128, 8, device="cuda"))
        policy = Categorical(logits=logits)
        assert policy.log_prob(policy.sample()).shape == (128,) and policy.entropy().shape == (128,)
        other = torch.randint(18, (128,), device="cuda")
        Categorical(probs=logits.softmax(-1)).log_prob(other).mean().backward()
        Normal(logits, logits.exp()).log_prob(torch.randn_like(logits)).sum().item()
        Bernoulli(logits=logits).log_prob((logits > 0).float())
    """)
    )


def test_inference_mode_takes_what_no_grad_takes(dry_run):
    ran = good(
        dry_run("""
        import torch
        import torch.nn.functional as F
        from torch import nn
        x, w = torch.randn(64, 128, 256, device="cuda"), torch.randn(256, 256, device="cuda")
        q = torch.randn(8, 4, 128, 64, device="cuda")
        image = torch.randn(4, 3, 32, 32, device="cuda")
        layer = nn.TransformerDecoderLayer(256, 4, batch_first=True).cuda().eval()
        conv = nn.Conv2d(3, 8, 3, padding="same").cuda()
        x @ w  # the first has the workspace of cuBLAS made
        works = {
            "dropout": lambda: F.dropout(x, 0.5, False), "training dropout": lambda: F.dropout(x, 0.5, True),
            "feature dropout": lambda: F.dropout2d(image, 0.5, False), "alpha dropout": lambda: F.alpha_dropout(x, 0.5, False),
            "linear": lambda: F.linear(x, w), "matmul": lambda: x @ w, "einsum": lambda: torch.einsum("bti,ij->btj", x, w),
            "layer norm": lambda: F.layer_norm(x, (256,)), "attention": lambda: F.scaled_dot_product_attention(q, q, q),
            "reshape": lambda: x.transpose(0, 1).reshape(-1, 256), "chunk": lambda: torch.cat(x.chunk(4)),
            "pad": lambda: F.pad(x, (1, 1)), "conv": lambda: conv(image), "decoder": lambda: layer(x, x),
            "cross entropy": lambda: F.cross_entropy(x.flatten(0, 1), torch.zeros(8192, dtype=torch.long, device="cuda")),
            "type as": lambda: x.half().type_as(x), "to": lambda: x.to(x.dtype), "contiguous": lambda: x.contiguous(),
            "repeat": lambda: x.repeat_interleave(2, dim=0), "interpolate": lambda: F.interpolate(image, scale_factor=2),
        }
        for name, work in works.items():
            taken = []
            for mode in (torch.no_grad, torch.inference_mode):
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                with mode():
                    result = work()
                taken.append((torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before))
                del result
            print(name, *taken, sep="\\t")
        """)
    )
    taken = [line.split("\t") for line in ran.out.splitlines()]
    assert len(taken) == 20 and not [name for name, no_grad, inference in taken if no_grad != inference], taken
    assert dict((name, inference) for name, _, inference in taken)["dropout"] == "(0, 0)"


def test_the_state_of_random_numbers_is_that_of_a_gpu(dry_run):
    good(
        dry_run("""
        import torch
        torch.cuda.manual_seed(7)
        state = torch.cuda.get_rng_state()
        assert state.dtype is torch.uint8 and state.shape == (16,) and state[:8].view(torch.int64).item() == 7
        assert state[8:].view(torch.int64).item() % 4 == 0 and len(torch.cuda.get_rng_state_all()) == 1
        first = torch.rand(3, device="cuda")
        torch.rand(5, device="cuda")
        torch.cuda.set_rng_state(state)
        again = torch.rand(3, device="cuda")
        with torch.random.fork_rng(devices=[0]):
            torch.cuda.manual_seed(1)
        torch.cuda.set_rng_state_all([state])
        other = state.clone()
        other[8:].view(torch.int64).fill_(4000)
        torch.cuda.set_rng_state(other)
        try:
            torch.cuda.set_rng_state(torch.get_rng_state())
        except RuntimeError as problem:
            assert "RNG state is wrong size" in str(problem)
        else:
            raise AssertionError("the host's state is another")
    """)
    )
