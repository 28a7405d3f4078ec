"""Programs of many ranks, of which a few are run: their process groups, what is built on them, and what starts them."""

import textwrap

import pytest

from dry import H200

HEAD = """
import os
import torch
import torch.distributed as dist
from torch import nn
os.environ.setdefault("WORLD_SIZE", "8")
os.environ.setdefault("RANK", "3")
os.environ.setdefault("LOCAL_RANK", "0")
M = 1 << 20
"""


def good(ran):
    assert ran.status == 0, ran.err
    return ran


MEASURED_WITH = "2.11.0+cu130"


@pytest.fixture
def rank_of(dry_run):
    """One rank of eight, on an H200."""
    return lambda program, **options: dry_run(HEAD + textwrap.dedent(program), **{"gpu": H200, **options})


# --- the group


def test_a_group_has_the_rank_and_size_that_the_program_says(rank_of):
    good(
        rank_of("""
        dist.init_process_group("nccl")
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (3, 8, "nccl")
        dist.destroy_process_group()
        dist.init_process_group("gloo", init_method="tcp://10.0.0.1:23456", rank=5, world_size=6)
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (5, 6, "gloo")
        dist.destroy_process_group()
        dist.init_process_group(init_method="tcp://10.0.0.1:23456?rank=1&world_size=4")
        assert (dist.get_rank(), dist.get_world_size()) == (1, 4)
        dist.destroy_process_group()
        store = dist.TCPStore("10.0.0.1", 29500, 2, False)
        dist.init_process_group("nccl", store=store, rank=0, world_size=2)
        pair = dist.new_group([0, 1])
        assert dist.get_rank(pair) == 0 and pair.size() == 2 and dist.get_backend(pair) == "nccl"
        assert dist.new_group([1]) == dist.GroupMember.NON_GROUP_MEMBER
    """)
    )


def test_groups_are_split_from_one_that_is_bound_to_its_gpu(rank_of):
    good(
        rank_of("""
        from torch.distributed.device_mesh import init_device_mesh
        dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
        half = dist.split_group(split_ranks=[[0, 1, 2, 3], [4, 5, 6, 7]])
        assert half.size() == 4 and dist.get_rank(half) == 3
        mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("data", "tensor"))
        assert mesh.get_group("tensor").size() == 4 and mesh["data"].get_local_rank() == 0
        dist.all_reduce(torch.ones(4, device="cuda"), group=mesh.get_group("data"))
    """)
    )


def test_without_a_rank_it_fails_as_without_faultline(dry_run):
    ran = dry_run("import torch.distributed as dist\ndist.init_process_group('nccl')")
    assert ran.status == 1 and "environment variable RANK expected, but not set" in ran.err


def test_a_number_of_ranks_in_the_plan_stands_in_for_a_launcher(dry_run):
    good(
        dry_run(
            """
        import torch.distributed as dist
        dist.init_process_group("nccl")
        assert (dist.get_rank(), dist.get_world_size()) == (0, 16)
    """,
            ranks=16,
        )
    )


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_collectives_give_what_this_rank_has_repeated(rank_of, device):
    good(
        rank_of(f"""
        dist.init_process_group()
        device = "{device}"
        number = lambda *values: torch.tensor(values, dtype=torch.float32, device=device)
        def after(collective, *args, **options):
            collective(*args, **options)
            return args[0]
        op = dist.ReduceOp
        for operation, expected in ((op.SUM, 24.0), (op.MAX, 3.0), (op.MIN, 3.0), (op.PRODUCT, 3.0 ** 8)):
            assert after(dist.all_reduce, number(3.0), op=operation).item() == expected, operation
        parts = after(dist.all_gather, [number(0, 0) for _ in range(8)], number(1, 2))
        assert [part.tolist() for part in parts] == [[1, 2]] * 8
        assert after(dist.all_gather_into_tensor, number(*[0] * 16), number(1, 2)).tolist() == [1, 2] * 8
        assert after(dist.reduce_scatter_tensor, number(0, 0), number(*range(16))).tolist() == [8 * 6, 8 * 7], "the fourth rank's part of the sum of eight"
        assert after(dist.reduce_scatter, number(0), [number(i) for i in range(8)]).tolist() == [24]
        assert after(dist.broadcast, number(7), src=3).tolist() == [7]
        assert after(dist.scatter, number(0), [number(i) for i in range(8)], src=3).tolist() == [3]
        assert [part.tolist() for part in after(dist.all_to_all, [number(0) for _ in range(8)], [number(5) for _ in range(8)])] == [[5]] * 8
        objects = [None] * 8
        dist.all_gather_object(objects, {{"rank": dist.get_rank()}})
        assert objects == [{{"rank": 3}}] * 8
        work = dist.all_reduce(number(1), async_op=True)
        work.wait()
        assert work.is_completed()
        dist.barrier()
        dist.monitored_barrier(dist.new_group(backend="gloo"))
        requests = dist.batch_isend_irecv([dist.P2POp(dist.isend, number(1), 4), dist.P2POp(dist.irecv, number(1), 2)])
        [request.wait() for request in requests]
    """)
    )


def test_what_a_store_waits_for_is_taken_as_done(rank_of):
    good(
        rank_of("""
        store = dist.TCPStore("10.0.0.1", 29500, 8, False)
        dist.init_process_group("nccl", store=store, rank=3, world_size=8)
        store.set("mine", "1")
        assert store.get("mine") == b"1"
        store.wait(["of another"])
        while store.add("arrived", 1) < 8:
            pass
    """)
    )


def test_a_list_is_gathered_through_a_buffer(rank_of):
    good(
        rank_of("""
        dist.init_process_group("nccl")
        parts, given = [torch.empty(M, device="cuda") for _ in range(8)], torch.empty(M, device="cuda")
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        dist.all_gather(parts, given)
        assert torch.cuda.max_memory_allocated() - before == 32 * M and torch.cuda.memory_allocated() == before, "8 × 4 MiB beside the result"
        whole = torch.empty(8 * M, device="cuda")
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        dist.all_gather_into_tensor(whole, given)
        assert torch.cuda.max_memory_allocated() == before, "into one tensor it needs none"
    """)
    )


def test_nccl_is_noted_and_gloo_is_not(rank_of):
    noted = [
        n
        for n in good(rank_of("dist.init_process_group('nccl'); dist.all_reduce(torch.ones(1, device='cuda'))")).notes()
        if n["kind"] == "kernel"
    ]
    assert len(noted) == 1 and "this rank has 1 communicator, counted with 558 MiB" in noted[0]["text"]


def test_gloo_has_no_note_of_nccl(rank_of):
    notes = good(
        rank_of("dist.init_process_group('gloo'); dist.all_reduce(torch.ones(1)); torch.ones(1, device='cuda')")
    ).notes()
    assert not [n for n in notes if "NCCL" in n["text"]]
    assert [n["text"] for n in notes if n["kind"] == "mode"] == [], "rank 3 stands for nobody but itself"


@pytest.mark.parametrize(
    "line, said",
    [
        (
            "dist.broadcast_object_list([None], src=0)",
            "takes an object from rank 0, which has not been run before this one",
        ),
        ("dist.recv_object_list([None], src=0)", "recv_object_list() takes objects from another rank"),
        (
            "dist.recv(torch.zeros(3, dtype=torch.long, device='cuda'), 2)",
            "recv() takes 3 whole numbers from rank 2 of its group",
        ),
        (
            "dist.irecv(torch.zeros(1, dtype=torch.int32, device='cuda'), 2)",
            "recv() takes 1 whole number from rank 2 of its group",
        ),
        ("store.get('of another')", "the store's key 'of another' is set by a rank that is not run"),
        ("dist.new_group(backend='mpi')", "the backend mpi of torch.distributed is not known to a dry run"),
        ("dist.group.WORLD.merge_remote_group(store, 9)", "is not known to a dry run"),
    ],
)
def test_what_is_not_known_is_said_with_its_line(rank_of, line, said):
    ran = rank_of(f"store = dist.TCPStore('10.0.0.1', 29500, 8, False)\ndist.init_process_group('nccl')\n{line}")
    assert ran.status == 1 and said in ran.summary["unplanned"]["text"], ran.err
    assert ran.summary["unplanned"]["line"].endswith("program.py:12")


def test_what_a_stage_sends_in_a_shape_that_is_known_is_planned(rank_of):
    ran = good(
        rank_of("""
        dist.init_process_group("nccl")
        for received in (torch.zeros(4, 512, device="cuda"), torch.zeros(4, 512, dtype=torch.long, device="cuda")):
            dist.recv(received, 2)
            dist.send(received, 4)
    """)
    )
    assert ran.summary["unplanned"] is None
    assert any("recv() takes values from another rank" in note["text"] for note in ran.notes())


def test_host_tensors_have_no_place_in_nccl(rank_of):
    ran = rank_of("dist.init_process_group('nccl'); dist.all_reduce(torch.ones(1))")
    assert (
        ran.status == 1
        and "No backend type associated with device type cpu" in ran.err
        and not ran.summary["unplanned"]
    )


# --- DistributedDataParallel, as measured on an H200 with NCCL (PyTorch 2.11): 64.06 MiB of parameters, 64 MiB of cuBLAS workspaces

DDP = """
    dist.init_process_group("nccl")
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(16)]).cuda()
    parallel = nn.parallel.DistributedDataParallel(model, device_ids=[0], {options})
    seen = [torch.cuda.memory_allocated() / M]
    optimizer = torch.optim.AdamW(parallel.parameters())
    for step in range(3):
        parallel(torch.randn(8, 1024, device="cuda")).mean().backward()
        seen.append(torch.cuda.memory_allocated() / M)
        optimizer.step(); optimizer.zero_grad()
        seen += [torch.cuda.memory_allocated() / M, torch.cuda.max_memory_allocated() / M]
    print(*seen)
"""


@pytest.mark.parametrize(
    "options, measured",
    [
        ("", [128.125, 257.188, 321.250, 449.375, 385.313, 321.250, 449.375, 385.313, 321.250, 449.375]),
        (
            "gradient_as_bucket_view=True",
            [128.125, 193.125, 321.250, 385.313, 321.250, 321.250, 385.313, 321.250, 321.250, 385.313],
        ),
    ],
)
def test_ddp_takes_what_it_took_on_a_gpu(rank_of, monkeypatch, options, measured):
    monkeypatch.setenv("FAULTLINE_PLAN_RELEASE", MEASURED_WITH)
    seen = [float(number) for number in good(rank_of(DDP.format(options=options))).out.split()]
    assert seen == pytest.approx(measured, abs=0.01)


@pytest.mark.parametrize(
    "options", ["find_unused_parameters=True", "static_graph=True", "bucket_cap_mb=1", "broadcast_buffers=False"]
)
def test_ddp_of_every_kind_trains(rank_of, options):
    good(rank_of(DDP.format(options=options)))


def test_gradients_are_kept_back_in_no_sync(rank_of):
    good(
        rank_of("""
        dist.init_process_group("nccl")
        model = nn.Sequential(nn.Linear(1024, 1024), nn.BatchNorm1d(1024)).cuda()
        parallel = nn.parallel.DistributedDataParallel(model)
        count = dist.group.WORLD._get_sequence_number_for_group
        def collectives(run):
            before = count(); run(); return count() - before
        run = lambda: parallel(torch.randn(8, 1024, device="cuda")).mean().backward()
        assert collectives(run) >= 2, "the buffers, and the buckets"
        with parallel.no_sync():
            run()  # after the first backward pass the buckets are made anew
            assert collectives(run) == 0
        run()
        assert collectives(run) >= 2
    """)
    )


def test_batch_norm_over_all_ranks(rank_of):
    good(
        rank_of("""
        dist.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Conv2d(3, 64, 1), nn.BatchNorm2d(64))).cuda())
        for _ in range(2):
            x = torch.randn(8, 3, 128, 128, device="cuda")
            y = model(x)
            before = torch.cuda.memory_allocated()
            y.sum().backward()
            del y
            freed = (before - torch.cuda.memory_allocated()) / M
            model.zero_grad()
        assert abs(freed - 2 * 32) < 1, "the layer's input and its result"
    """)
    )


# --- other uses


@pytest.mark.parametrize(
    "use",
    [
        """
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
        for state, hook in ((None, default_hooks.fp16_compress_hook), (powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)):
            model = nn.parallel.DistributedDataParallel(nn.Linear(512, 512).cuda())
            model.register_comm_hook(state, hook)
            for _ in range(4):
                model(torch.randn(4, 512, device="cuda")).sum().backward()
    """,
        """
        model = nn.parallel.DistributedDataParallel(nn.Linear(512, 512).cuda())
        with model.join():
            for _ in range(3):
                model(torch.randn(4, 512, device="cuda")).sum().backward()
    """,
        """
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        from torch.distributed.fsdp import fully_shard
        model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).cuda()
        for layer in model:
            fully_shard(layer)
        fully_shard(model)(torch.randn(4, 512, device="cuda")).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
        assert whole["0.weight"].shape == (512, 512) and model.state_dict()["0.weight"].to_local().shape == (64, 512)
    """,
        """
        import torch.distributed.nn.functional as functional
        x = torch.randn(8, 4, device="cuda", requires_grad=True)
        functional.all_reduce(x * 1).sum().backward()
        torch.cat(functional.all_gather(x)).sum().backward()
    """,
    ],
    ids=["hooks of DDP", "uneven inputs", "state and clipping of FSDP", "collectives with gradients"],
)
def test_what_stands_on_the_group_runs(rank_of, use):
    good(rank_of('dist.init_process_group("cpu:gloo,cuda:nccl")\n' + textwrap.dedent(use)))


def test_a_checkpoint_of_all_ranks_is_saved(rank_of, monkeypatch):
    """The first rank looks whether the parts of all make the whole; here each is taken to have what the first one has."""
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("LOCAL_RANK", "0")
    use = """
        import torch.distributed.checkpoint as checkpoints
        from torch.distributed.fsdp import fully_shard
        dist.init_process_group("cpu:gloo,cuda:nccl")
        model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(2)]).cuda()
        fully_shard(model)
        checkpoints.save({"model": model.state_dict()}, checkpoint_id="parts")
    """
    good(rank_of(textwrap.dedent(use)))


# --- FSDP

FSDP = """
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    dist.init_process_group("nccl")
    torch.cuda.set_device(0)
    if {first}:
        model = nn.Sequential(*[nn.Linear(8192, 8192, bias=False) for _ in range(8)])
        model = FullyShardedDataParallel(model, auto_wrap_policy=ModuleWrapPolicy({{nn.Linear}}), device_id=0)
    else:
        with torch.device("meta"):
            model = nn.Sequential(*[nn.Linear(8192, 8192, bias=False) for _ in range(8)])
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
        model.to_empty(device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x = torch.randn(1, 8192, device="cuda")
    seen = [torch.cuda.memory_allocated() / M]
    for step in range(2):
        torch.cuda.reset_peak_memory_stats()
        model(x).sum().backward()
        seen += [torch.cuda.memory_allocated() / M, torch.cuda.max_memory_allocated() / M]
        optimizer.step(); optimizer.zero_grad()
    seen.append(torch.cuda.memory_allocated() / M)
    print(*seen)
"""


@pytest.mark.parametrize("first", [True, False], ids=["FullyShardedDataParallel", "fully_shard"])
def test_a_rank_of_fsdp_agrees_with_its_arithmetic(rank_of, first):
    """Eight units of 256 MiB, two GiB in all, over eight ranks: a shard of everything is 256 MiB."""
    made, backward, peak, second_backward, second_peak, end = map(
        float, good(rank_of(FSDP.format(first=first))).out.split()
    )
    unit, shard, workspaces = 256, 256, 2 * 32
    assert made == pytest.approx(shard, rel=0.01)
    assert backward == pytest.approx(shard + shard + workspaces, rel=0.01), "parameters, gradients"
    assert end == pytest.approx(3 * shard + workspaces, rel=0.01), "parameters and Adam's two states"
    gradients = 6 * unit / 8 + 2 * unit  # of six units they are reduced, of the two that are gathered they are whole
    assert second_peak == pytest.approx(3 * shard + workspaces + 2 * unit + gradients, rel=0.01)
    assert second_backward == pytest.approx(4 * shard + workspaces, rel=0.01)
    assert peak < second_peak


NET = """
    import sys
    from torch.distributed.fsdp import CPUOffload, CPUOffloadPolicy, FullyShardedDataParallel, MixedPrecision, MixedPrecisionPolicy, ShardingStrategy, fully_shard
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    dist.init_process_group("nccl")
    class Block(nn.Module):
        def __init__(self, d=1024):
            super().__init__()
            self.a, self.b = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        def forward(self, x):
            return x + self.b(torch.relu(self.a(x)))
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.blocks, self.h = nn.Embedding(8192, 1024), nn.ModuleList(Block() for _ in range(6)), nn.Linear(1024, 8192)
        def forward(self, x):
            x = self.e(x)
            for block in self.blocks:
                x = block(x)
            return self.h(x)
    def fsdp(**options):
        return FullyShardedDataParallel(Net(), auto_wrap_policy=ModuleWrapPolicy({Block}), device_id=0, **options)
    def sharded(**options):
        model = Net() if "offload_policy" in options else Net().cuda()
        for block in model.blocks:
            fully_shard(block, **options)
        return fully_shard(model, **options)
    half = torch.bfloat16
"""
TRAIN = """
    made = torch.cuda.memory_allocated() / M
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        logits = model(torch.randint(8192, (4, 64), device="cuda"))
        loss = logits.float().pow(2).mean()
        forward = torch.cuda.memory_allocated() / M
        loss.backward()
        backward = torch.cuda.memory_allocated() / M
        optimizer.step(); optimizer.zero_grad()
    print(made, forward, backward, torch.cuda.memory_allocated() / M, torch.cuda.max_memory_allocated() / M, torch.cuda.max_memory_reserved() / M)
"""


@pytest.mark.parametrize(
    "made_by, measured",
    [
        ("sharded()", [32.02, 264.09, 201.08, 169.06, 424.20, 654]),
        ("sharded(mp_policy=MixedPrecisionPolicy(param_dtype=half))", [32.02, 220.57, 197.08, 165.06, 299.14, 448]),
        ("sharded(reshard_after_forward=False)", [32.02, 456.21, 201.08, 169.06, 521.26, 750]),
        ("sharded(offload_policy=CPUOffloadPolicy())", [0, 168.03, 73.00, 73.00, 324.14, 548]),
        ("fsdp()", [32.02, 264.09, 201.08, 169.06, 419.20, 584]),
        (
            "fsdp(mixed_precision=MixedPrecision(param_dtype=half, reduce_dtype=half, buffer_dtype=half))",
            [32.02, 220.57, 197.08, 165.06, 296.14, 452],
        ),
        ("fsdp(sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)", [32.02, 456.21, 201.08, 169.06, 547.28, 720]),
        ("fsdp(sharding_strategy=ShardingStrategy.NO_SHARD)", [256.15, 872.45, 1097.60, 841.45, 1353.74, 1572]),
        ("fsdp(cpu_offload=CPUOffload(offload_params=True))", [0, 168.03, 73.00, 73.00, 323.14, 488]),
        ("fsdp(use_orig_params=True)", [32.02, 264.09, 201.08, 201.08, 419.20, 584]),
    ],
)
def test_fsdp_takes_what_it_took_on_a_gpu(rank_of, monkeypatch, made_by, measured):
    """As measured on an H200 (PyTorch 2.11): rank 0 of 8, with PyTorch's own process group that moves nothing. After the third step, in MiB."""
    monkeypatch.setenv("FAULTLINE_PLAN_RELEASE", MEASURED_WITH)
    program = f'os.environ["RANK"] = "0"\n{textwrap.dedent(NET)}\nmodel = {made_by}\n{textwrap.dedent(TRAIN)}'
    *allocated, reserved = map(float, good(rank_of(program)).out.split())
    assert allocated == pytest.approx(measured[:-1], abs=0.02)
    assert reserved == pytest.approx(measured[-1], rel=0.01)


# --- tensors that are spread, and optimizers


def test_a_layer_is_split_over_the_ranks(rank_of):
    good(
        rank_of("""
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("data", "tensor"))
        assert mesh["tensor"].get_local_rank() == 3 and mesh.get_group("data").size() == 2
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.up, self.down = nn.Linear(4096, 16384, bias=False), nn.Linear(16384, 4096, bias=False)
            def forward(self, x):
                return self.down(torch.relu(self.up(x)))
        model = parallelize_module(Net().cuda(), mesh["tensor"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        assert torch.cuda.memory_allocated() == 128 * M, "a quarter of 512 MiB"
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            loss = model(torch.randn(16, 4096, device="cuda")).pow(2).mean()
            loss.backward(); optimizer.step()
            assert float(loss) == float(loss)
            del loss
        held = torch.cuda.memory_allocated() / M
        assert abs(held - (4 * 128 + 64)) < 2, held
    """)
    )


def test_an_optimizer_keeps_its_part_of_the_states(rank_of):
    ran = good(
        rank_of("""
        from torch.distributed.optim import ZeroRedundancyOptimizer
        dist.init_process_group("nccl")
        model = nn.Sequential(*[nn.Linear(4096, 4096, bias=False) for _ in range(8)]).cuda()
        optimizer = ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam)
        model(torch.randn(4, 4096, device="cuda")).sum().backward()
        before = torch.cuda.memory_allocated()
        optimizer.step()
        states = (torch.cuda.memory_allocated() - before) / M
        assert abs(states - 2 * 64) < 1, "one of eight layers has its states here"
    """)
    )
    assert "sharding" in ran.summary["uses"], "so other numbers of ranks are worth a try"


def test_a_rank_that_runs_out_of_memory_is_told_by_its_line(rank_of):
    ran = rank_of("""
        dist.init_process_group("nccl")
        model = nn.parallel.DistributedDataParallel(nn.Linear(1 << 16, 1 << 16, bias=False).cuda())
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.randn(1, 1 << 16, device="cuda")).sum().backward()
        optimizer.step()
        extra = torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
    """)
    assert ran.status == 1 and "OutOfMemoryError" in ran.err and ran.summary["exception"]["line"] == 16


# --- what starts the ranks

LAUNCHED = """
import os, sys
import torch
import torch.distributed as dist
def main():
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    told = [{"seed": 7}] if rank == 0 else [None]
    dist.broadcast_object_list(told, src=0)
    number = torch.tensor([5.0 if rank == 0 else 0.0], device="cpu")
    dist.broadcast(number, src=0, group=dist.new_group(backend="gloo"))
    held = torch.empty((2 if rank == 0 and "uneven" in sys.argv else 1) << 28, device="cuda")
    print("rank", rank, "of", os.environ["WORLD_SIZE"], "here", os.environ["LOCAL_RANK"], "node", os.environ["GROUP_RANK"], told, number.item(), flush=True)
    if "fail" in sys.argv and rank == 1:
        raise ValueError("the last one")
    if "part" in sys.argv and rank == 0:
        dist.all_reduce(held[:1])
main()
"""


def torchrun(dry_run, tmp_path, *words, options=("--nproc-per-node", "8"), **plan):
    (tmp_path / "train.py").write_text(LAUNCHED)
    return dry_run(
        f"from torch.distributed.run import main\nmain([*{options!r}, 'train.py', *{words!r}])",
        cold=True,
        **{"gpus": [H200] * 8, **plan},
    )


def all_notes(ran) -> list:
    return [note for trace in ran.traces for note in ran.notes_of(trace)]


@pytest.mark.parametrize(
    "world, expected", [(1, [0]), (2, [0, 1]), (3, [0, 1, 2]), (8, [0, 4, 7]), (1024, [0, 512, 1023])]
)
def test_a_few_ranks_stand_for_all(world, expected):
    from faultline.plan.torch.ranks import ranks

    assert ranks.representatives(world) == expected


def test_torchrun_starts_the_first_one_between_and_the_last(dry_run, tmp_path):
    ran = good(torchrun(dry_run, tmp_path, "uneven", options=("--nproc-per-node", "8", "--nnodes", "2")))
    assert [line.split() for line in ran.out.splitlines()] == [
        f"rank {rank} of 16 here {here} node {node} [{{'seed': 7}}] 5.0".split()
        for rank, here, node in ((0, 0, 0), (8, 0, 1), (15, 7, 1))
    ]
    texts = [note["text"] for note in all_notes(ran) if note["kind"] == "mode"]
    differ = "the ranks differ in the memory they take from the GPU: rank 0 2.00 GiB, rank 8 1.00 GiB, rank 15 1.00 GiB; ranks that were not run can take another amount"
    assert sorted(texts) == sorted(
        text
        for rank in (0, 8, 15)
        for text in (
            differ,
            f"of 16 ranks, 0, 8 and 15 are run, and the others are taken to be like them; this is about rank {rank}",
        )
    )
    assert sorted(summary["peak_reserved"] for summary in ran.summaries) == [0, 1 << 30, 1 << 30, 2 << 30], (
        "the launcher, and three ranks on GPUs 0 and 7"
    )


def test_the_worst_end_is_the_launchers(dry_run, tmp_path):
    ran = torchrun(dry_run, tmp_path, "fail", options=("--nproc-per-node", "2"))
    assert ran.status == 1 and "ValueError: the last one" in ran.err
    noted = {note["text"]: note["line"] for note in all_notes(ran)}
    assert noted["rank 1 ended with ValueError: the last one"].endswith("train.py:16")
    assert not [text for text in noted if "differ" in text or "stand" in text], "both were run, and alike"


def test_ranks_that_part_are_not_planned(dry_run, tmp_path):
    ran = torchrun(dry_run, tmp_path, "part", options=("--nproc-per-node", "2"))
    said = {summary["unplanned"]["text"] for summary in ran.summaries if summary["unplanned"]}
    assert len(said) == 2 and any(
        "ranks 0 and 1 do not make the same collectives: the 1st of a group is allreduce at train.py:18 on rank 0 and nothing more on rank 1"
        in text
        for text in said
    ), said


@pytest.mark.parametrize(
    "own, other, to_the_end, expected",
    [
        (["allreduce", "broadcast"], ["allreduce", "broadcast"], True, None),
        (["allreduce", "broadcast"], ["allreduce", "barrier"], False, (2, "broadcast", "barrier")),
        (["allreduce"], ["allreduce", "barrier"], True, (2, "nothing more", "barrier")),
        (["allreduce"], ["allreduce", "barrier"], False, None),
    ],
)
def test_where_two_ranks_part(own, other, to_the_end, expected):
    from faultline.plan.torch.ranks import ranks

    collectives = ranks.Collectives()
    for kind in own:
        collectives.add("0 8", kind)
    collectives.add("of others 4", "allreduce")
    found = collectives.parting({"0 8": [[kind, "train.py:1"] for kind in other]}, to_the_end)
    assert (found and (found[0], found[1][0], found[2][0])) == expected


def test_one_gpu_that_is_named_stands_for_one_for_each_rank(dry_run, tmp_path):
    ran = torchrun(dry_run, tmp_path, gpus=[H200], options=("--nproc-per-node", "2"))
    assert ran.status == 0, ran.err
    assert [note for note in all_notes(ran) if "one GPU is named and 2 ranks run on a machine" in note["text"]]
    assert not [summary["unplanned"] for summary in ran.summaries if summary["unplanned"]]


def test_more_ranks_than_gpus_fail_where_the_program_asks_for_one(dry_run, tmp_path):
    ran = torchrun(dry_run, tmp_path, gpus=[H200] * 2)
    assert ran.status == 1 and "The plan has 2 GPUs, cuda:0 to cuda:1; the program asked for cuda:4." in ran.err
    assert [summary["exception"]["line"] for summary in ran.summaries if summary["exception"]] == [7]
    assert any("--gpu 8xNAME" in (summary["unplanned"] or {}).get("text", "") for summary in ran.summaries)
    assert "rank 7" not in ran.out


@pytest.mark.parametrize(
    "start",
    [
        "torch.multiprocessing.spawn(main, args=(8,), nprocs=8)",
        "started = [torch.multiprocessing.get_context('spawn').Process(target=main, args=(rank, 4)) for rank in range(4)]\n    [p.start() for p in started]\n    [p.join() for p in started]",
    ],
)
def test_ranks_of_multiprocessing(dry_run, start):
    ran = good(
        dry_run(
            f"""
import os
import torch
import torch.distributed as dist
def main(rank, world):
    dist.init_process_group("nccl", init_method="tcp://localhost:29500", rank=rank, world_size=world)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024).to(rank), device_ids=[rank])
    print("rank", rank, flush=True)
if __name__ == "__main__":
    {start}
""",
            cold=True,
            gpus=[H200] * 8,
        )
    )
    assert sorted(ran.out.split("\n")) == [
        "",
        *[f"rank {rank}" for rank in ((0, 4, 7) if "spawn(main" in start else range(4))],
    ]


def test_a_parent_that_waits_for_a_result_of_each_rank_gets_it(dry_run):
    ran = good(
        dry_run(
            """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
def main(rank, world, results):
    dist.init_process_group("nccl", init_method="tcp://localhost:29500", rank=rank, world_size=world)
    held = torch.ones(1 << 20, device=f"cuda:{rank}")
    dist.all_reduce(held)
    results.put((rank, torch.cuda.memory_allocated(rank)))
if __name__ == "__main__":
    context = mp.get_context("spawn")
    results = context.Queue()
    started = [context.Process(target=main, args=(rank, 4, results)) for rank in range(4)]
    [process.start() for process in started]
    print(sorted(results.get() for _ in started))
    [process.join() for process in started]
""",
            cold=True,
            gpus=[H200] * 4,
        )
    )
    assert ran.out.strip() == str([(rank, 4 << 20) for rank in range(4)])
