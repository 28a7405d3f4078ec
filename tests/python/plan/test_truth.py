"""A dry run's verdict is the GPU's: host work is real, what could not be planned is known, stand-ins are possible values, there is one GPU."""

import textwrap

import pytest

# Each asserts for itself; sizes are beyond what is made at once, so the numbers are made by their first read.
HOST_WORK = {
    "random numbers are drawn": "x = torch.rand(20_000_000); assert 0.49 < x.mean().item() < 0.51 and x.min().item() >= 0 and x.max().item() < 1",
    "a normal distribution": "x = torch.randn(20_000_000); assert abs(x.mean().item()) < 0.01 and 0.99 < x.std().item() < 1.01",
    "small ones follow the seed": "torch.manual_seed(3); x = torch.rand(70_000); torch.manual_seed(3); assert torch.equal(x, torch.rand(70_000)) and x.std() > 0.2",
    "an element is written": "x = torch.zeros(30_000_000); x[5] = 3.0; x[10:20] += 2; assert x.sum().item() == 23",
    "a large real tensor is copied in": "x = torch.zeros(30_000_000); x[:100_000] = torch.arange(100_000).float(); assert x[99_999].item() == 99_999",
    "in place, one after the other": "x = torch.randn(20_000_000).mul_(0).add_(7).clamp_(max=5); assert x[17].item() == 5",
    "conversions": "x = torch.full((20_000_000,), 7.0).clone().half(); assert x[17].item() == 7 and x.dtype is torch.half",
    "a source that changes later": "s = torch.ones(20_000_000); d = s * 2; s.fill_(5); assert d[3].item() == 2 and s[3].item() == 5",
    "a source that is gone": "s = torch.ones(20_000_000); d = s * 2 + 1; del s; assert d[3].item() == 3",
    "numpy reads": "x = torch.empty(20_000_000).fill_(4.0); assert x.numpy()[3] == 4",
    "numpy writes": "x = torch.zeros(20_000_000); x.numpy()[7] = 9; assert x[7].item() == 9",
    "a list": "x = torch.full((20_000_000,), 2.0); assert x[:70_000].tolist()[5] == 2",
    "printed": "x = torch.full((20_000_000,), 2.0); assert '2., 2.' in str(x), str(x)",
    "deepcopy": "x = copy.deepcopy(torch.full((20_000_000,), 3.0)); assert x[1].item() == 3",
    "a comparison": "x = torch.rand(20_000_000); assert 9_000_000 < (x > 0.5).sum().item() < 11_000_000",
    "sorting": "x = torch.rand(20_000_000)[:100_000].sort().values; assert (x[1:] >= x[:-1]).all() and x[-1] > 0.9",
    "a matrix product": "a = torch.ones(4096, 4200); assert (a @ torch.ones(4200, 2))[5, 1].item() == 4200",
    "layers are initialised": "m = torch.nn.Linear(5000, 5000); assert 0 < m.weight.std().item() < 0.1 and m.weight.abs().max().item() <= 0.015",
    "a saved tensor": "f = io.BytesIO(); torch.save(torch.full((16_000_000,), 2.0), f); f.seek(0); assert torch.load(f)[3].item() == 2",
    "a data loader": "d = torch.utils.data.TensorDataset(torch.ones(20_000_000).view(-1, 1000)); b, = next(iter(torch.utils.data.DataLoader(d, batch_size=10))); assert b.sum().item() == 10_000",
    "a slice on the GPU": "x = torch.full((20_000_000,), 3.0)[:8].cuda(); assert x.sum().item() == 24",
}


def test_host_work_is_real(dry_run):
    body = "".join(f"\nwhat = {name!r}\n{code}\n" for name, code in HOST_WORK.items())
    ran = dry_run("import copy, io, torch\ntorch.rand(16_777_216)\n" + body + "print('all of it')\n")
    assert ran.out == "all of it\n", ran.err
    assert ran.summary["exception"] is None


def test_a_batch_that_is_sized_by_data_takes_what_it_takes_on_the_gpu(dry_run):
    ran = dry_run("""
        import torch
        data = torch.rand(20_000_000)
        lengths = (data[:1000] * 100).long()
        chosen = int((data > 0.75).sum())              # about a quarter
        x = torch.zeros(chosen, 16, device="cuda")
        assert lengths.max() > 90
    """)
    assert ran.status == 0, ran.err
    assert 4_900_000 * 64 < ran.summary["peak_allocated"] < 5_100_000 * 64


def test_a_large_model_on_the_host_takes_no_memory(dry_run):
    ran = dry_run(
        """
        import resource, torch
        with torch.no_grad():
            layers = [torch.nn.Linear(16384, 16384, bias=False) for _ in range(24)]   # 24 GiB
            for layer in layers:
                torch.nn.init.trunc_normal_(layer.weight, std=0.02)
                layer.half().cuda()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 << 20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    """,
        gpu={"name": "any", "capacity_bytes": 80 << 30, "context_bytes": 500 << 20},
    )
    assert ran.status == 0, ran.err
    assert ran.summary["peak_allocated"] >= 24 * 512 << 20


SWALLOWED = {
    "quantized": "torch.quantize_per_tensor(torch.eye(3, device='cuda'), 0.1, 0, torch.qint8)",
    "mpi": "torch.distributed.init_process_group('mpi')",
    "sparse": "torch.eye(3, device='cuda').to_sparse().index_add(0, torch.zeros(1, dtype=torch.int64, device='cuda'), torch.ones(1, 3, device='cuda'))",
}


@pytest.mark.parametrize("code", SWALLOWED.values(), ids=SWALLOWED)
def test_what_cannot_be_planned_is_known_also_where_the_program_goes_on(dry_run, code):
    ran = dry_run(
        f"import torch\nx = torch.ones(4, device='cuda')\ntry:\n    {code}\nexcept Exception:\n    pass\nprint('went on')\n"
    )
    assert ran.status == 0 and ran.out == "went on\n", ran.err
    assert "not known to a dry run" in ran.summary["unplanned"]["text"]
    assert ran.summary["unplanned"]["line"].endswith("program.py:4")


def test_a_program_of_which_all_is_planned_has_nothing_unplanned(dry_run):
    ran = dry_run(
        "import torch\ntry:\n    torch.ones(2, 3, device='cuda') @ torch.ones(2, 3, device='cuda')\nexcept RuntimeError:\n    pass\n"
    )
    assert ran.summary["unplanned"] is None


ONE_GPU = [
    "torch.zeros(3, device='cuda:1')",
    "torch.zeros(3).to('cuda:1')",
    "torch.zeros(3).cuda(1)",
    "torch.nn.Linear(2, 2).to('cuda:1')",
    "torch.tensor([1.0], device='cuda:1')",
    "torch.cuda.set_device(1)",
    "torch.zeros(3, device='cuda').to('cuda:1')",
    "torch.cuda.get_device_properties(1)",
    "torch.cuda.mem_get_info(1)",
    "torch.cuda.device(1).__enter__()",
    "torch.Generator(device='cuda:1')",
    "torch.rand_like(torch.zeros(2), device='cuda:1')",
]


def test_there_is_one_gpu(dry_run):
    tries = "".join(
        f"\ntry:\n    {code}\n    print({code!r})\nexcept getattr(torch, 'AcceleratorError', RuntimeError) as problem:\n    assert 'invalid device ordinal' in str(problem), problem\n"
        for code in ONE_GPU
    )
    ran = dry_run(
        "import torch\nassert torch.cuda.device_count() == 1\ntorch.zeros(2, device='cuda:0').to('cuda').cuda(0)\n"
        + tries
    )
    assert ran.status == 0 and ran.out == "", ran.out + ran.err


def test_a_generator_is_where_it_was_made(dry_run):
    ran = dry_run(
        "import torch\n"
        "print(torch.Generator().device, torch.Generator('cuda').device, torch.Generator(device='cuda:0').manual_seed(3).device)\n"
        "g = torch.Generator(device='cuda')\n"
        "print(torch.randn(3, generator=g, device='cuda').device, torch.randperm(5, generator=g, device='cuda').device)\n"
        "print(torch.rand(2, generator=torch.Generator().manual_seed(0)).device)\n"
    )
    assert ran.out.split() == ["cpu", "cuda:0", "cuda:0", "cuda:0", "cuda:0", "cpu"], ran.out + ran.err


# What is read, and what it can be.
RANGES = {
    "F.cross_entropy(out, labels)": "0 <= v",
    "F.nll_loss(out.log_softmax(-1), labels)": "0 <= v",
    "F.mse_loss(out, zeros)": "0 <= v",
    "F.l1_loss(out, zeros)": "0 <= v",
    "F.smooth_l1_loss(out, zeros)": "0 <= v",
    "F.binary_cross_entropy_with_logits(out, zeros)": "0 <= v",
    "F.binary_cross_entropy(out.sigmoid(), zeros)": "0 <= v",
    "F.kl_div(out.log_softmax(-1), out.softmax(-1), reduction='batchmean')": "-1e-6 <= v",
    "out.softmax(-1)[3, 4]": "0 <= v <= 1",
    "out.softmax(-1).max()": "0 <= v <= 1",
    "out.sigmoid()[1, 1]": "0 <= v <= 1",
    "1 - out.sigmoid().mean()": "0 <= v <= 1",
    "out.log_softmax(-1)[0, 0]": "v <= 0",
    "out.log_softmax(-1).exp()[0, 0]": "0 <= v <= 1",
    "F.logsigmoid(out)[0, 0]": "v <= 0",
    "out.tanh()[0, 0]": "-1 <= v <= 1",
    "out.relu()[2, 2]": "0 <= v",
    "out.exp()[0, 0]": "0 < v",
    "out.abs().sum()": "0 <= v",
    "out.norm()": "0 <= v",
    "out.var()": "0 <= v",
    "out.std()": "0 <= v",
    "out.square().mean().sqrt()": "0 <= v",
    "out.argmax(-1)[7]": "0 <= v < 1000",
    "out.topk(5).indices[0, 0]": "0 <= v < 1000",
    "torch.randint(5, 10, (100_000,), device='cuda')[9]": "5 <= v < 10",
    "torch.rand(100_000, device='cuda')[4]": "0 <= v < 1",
    "torch.multinomial(out.softmax(-1), 1)[0]": "0 <= v < 1000",
    "(out > 0).sum()": "0 <= v <= 64_000",
    "torch.isfinite(out).all()": "v",
    "torch.isnan(out).any()": "not v",
    "-(out.softmax(-1) * out.log_softmax(-1)).sum(-1).mean()": "0 <= v",
    "torch.empty(100_000, device='cuda').uniform_(2, 4)[1]": "2 <= v <= 4",
}


def test_stand_ins_are_values_that_the_operation_can_give(dry_run):
    checks = "".join(f"\nv = ({code}).item()\nif not ({holds}): print({code!r}, v)\n" for code, holds in RANGES.items())
    ran = dry_run(
        "import torch, torch.nn.functional as F\nout = torch.nn.Linear(512, 1000).cuda()(torch.randn(64, 512, device='cuda'))\nlabels = torch.randint(1000, (64,), device='cuda')\nzeros = torch.zeros_like(out)\n"
        + checks
    )
    assert ran.status == 0 and ran.out == "", ran.out + ran.err


READ = "import torch, math\nv = torch.nn.Linear(512, 1000).cuda()(torch.randn(64, 512, device='cuda')).mean().item()\n"


@pytest.mark.parametrize(
    "code, blamed",
    [
        ("math.log(v - v)", True),
        ("1 / (v - v)", True),
        ("assert v == 17.25", True),
        ("{0.5: 1}[v]", True),
        ("raise RuntimeError('diverged')", True),
        ("import no_such_module", False),
        ("torch.ones(2, 3, device='cuda') @ torch.ones(2, 3, device='cuda')", False),
        ("open('nowhere')", False),
    ],
)
def test_a_failure_after_a_stand_in_was_read_names_the_line(dry_run, code, blamed):
    ran = dry_run(READ + code + "\n")
    assert ran.status == 1 and ran.summary["exception"]["line"] == 3
    assert ran.summary["stand_in"].endswith("program.py:2") if blamed else ran.summary["stand_in"] == ""


def test_a_failure_without_a_stand_in_is_the_programs_own(dry_run):
    assert (
        dry_run("import torch\nx = torch.ones(3, device='cuda')\nassert x.sum().item() == 4\n").summary["stand_in"]
        == ""
    )


@pytest.mark.parametrize("at_least, stopped", [(0, "after 3 optimizer steps"), (600, None)])
def test_a_quick_program_is_not_stopped_for_its_steps(dry_run, at_least, stopped):
    ran = dry_run(
        textwrap.dedent("""
        import torch
        m = torch.nn.Linear(4, 4).cuda()
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(20):
            m(torch.ones(2, 4, device="cuda")).sum().backward()
            o.step()
        torch.zeros(1 << 28, device="cuda")  # the evaluation
    """),
        steps=3,
        at_least_seconds=at_least,
    )
    assert ran.status == 0 and ran.summary["stopped"] == stopped
    assert (ran.summary["peak_allocated"] > 1 << 30) == (stopped is None)


CARRIED = """
    import torch
    cell = torch.nn.GRUCell(8, 8).cuda()
    optimizer = torch.optim.{optimizer}
    h = torch.zeros(2, 8, device="cuda")
    for step in range(3):
        h = cell(torch.randn(2, 8, device="cuda"), h{detached})
        h.sum().backward(retain_graph={kept})
        optimizer.step()
    print(step)
"""


@pytest.mark.parametrize("is_detached", [False, True])
@pytest.mark.parametrize(
    "optimizer",
    ["SGD(cell.parameters(), 0.1)", "Adam(cell.parameters())", "SGD(cell.parameters(), 0.1, foreach=False)"],
)
def test_a_pass_through_weights_that_a_step_has_changed_is_refused(dry_run, optimizer, is_detached):
    """Also where one operation writes into all of them, which is the default on a GPU."""
    detached = ".detach()" if is_detached else ""
    ran = dry_run(CARRIED.format(optimizer=optimizer, detached=detached, kept=not is_detached))
    assert ran.summary["steps"] == (3 if is_detached else 1), ran.err
    assert ("modified by an inplace operation" in ran.err) == (not is_detached)
