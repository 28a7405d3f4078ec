"""Programs that use more than one GPU: each has an allocator of its own."""

import pytest

from dry import T4

TWO = {"gpus": [T4, T4]}


def good(ran):
    assert ran.status == 0, ran.err
    return ran


def by_device(ran) -> dict:
    return {device["index"]: device for device in ran.report()["devices"]}


def test_each_gpu_counts_its_own(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        assert torch.cuda.device_count() == 2 and torch.cuda.current_device() == 0
        a = torch.empty(256 << 20, dtype=torch.uint8, device="cuda:0")
        b = torch.empty(512 << 20, dtype=torch.uint8, device="cuda:1")
        assert a.device == torch.device("cuda", 0) and b.device == torch.device("cuda", 1)
        assert (torch.cuda.memory_allocated(0), torch.cuda.memory_allocated(1)) == (256 << 20, 512 << 20)
        c = b.to("cuda:0")
        assert torch.cuda.memory_allocated(0) == 768 << 20 and torch.cuda.memory_allocated("cuda:1") == 512 << 20
        del b
        assert torch.cuda.memory_allocated(1) == 0 and torch.cuda.memory_reserved(1) == 512 << 20
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved(1) == 0
        free, total = torch.cuda.mem_get_info(1)
        assert free < total == torch.cuda.get_device_properties(1).total_memory
    """,
            **TWO,
        )
    )
    devices = by_device(ran)
    assert devices[0]["peak"]["allocated"] == 768 << 20 and devices[1]["peak"]["allocated"] == 512 << 20


def test_the_current_gpu_is_where_things_are_made(dry_run):
    good(
        dry_run(
            """
        import threading
        import torch
        with torch.cuda.device(1):
            assert torch.empty(8, device="cuda").device.index == 1
            assert torch.ones(8).cuda().device.index == 1
        assert torch.zeros(8, device="cuda").device.index == 0
        torch.cuda.set_device(1)
        assert torch.cuda.current_device() == 1
        x = torch.rand(8, device="cuda")
        assert (x * 2 + 1).device.index == 1 and x.clone().get_device() == 1 and torch.tensor([1.0], device="cuda").get_device() == 1
        found = []
        worker = threading.Thread(target=lambda: found.append(torch.empty(1, device="cuda").device.index))
        worker.start(); worker.join()
        assert found == [0], "each thread begins with the first"
        with torch.cuda.device("cuda:0"):
            assert x.sum().device.index == 1, "an operation runs where its operands are"
        with torch.device("cuda:1"):
            assert torch.ones(3).device.index == 1
    """,
            **TWO,
        )
    )


def test_operands_of_two_gpus_are_refused(dry_run):
    ran = dry_run(
        """
        import torch
        torch.ones(4, device="cuda:0") + torch.ones(4, device="cuda:1")
    """,
        **TWO,
    )
    assert (
        ran.status == 1
        and "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"
        in ran.err
    )


@pytest.mark.parametrize(
    "line",
    [
        'torch.empty(8, device="cuda:2")',
        "torch.ones(3).cuda(2)",
        "torch.cuda.set_device(2)",
        'torch.nn.Linear(2, 2).to("cuda:2")',
        "torch.cuda.get_device_properties(2)",
        "torch.cuda.Stream(2)",
    ],
)
def test_a_gpu_that_is_not_planned_is_refused(dry_run, line):
    ran = dry_run(f"import torch\n{line}", **TWO)
    assert (
        ran.status == 1
        and "invalid device ordinal" in ran.err
        and "The plan has 2 GPUs, cuda:0 to cuda:1; the program asked for cuda:2." in ran.err
    )


def test_the_one_that_is_full_is_named(dry_run):
    ran = dry_run(
        """
        import torch
        kept = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda:0")]
        while True:
            kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda:1"))
    """,
        **TWO,
    )
    assert ran.status == 1 and "GPU 1 has a total capacity of 14.74 GiB" in ran.err
    report = ran.report()
    [finding] = [f for f in report["findings"] if f["rule"] == "memory/out-of-memory"]
    assert finding["device"] == 1


def test_a_pipeline_by_hand_trains(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        from torch import nn
        class Split(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU()).to("cuda:0")
                self.second = nn.Linear(4096, 8192).to("cuda:1")
            def forward(self, x):
                return self.second(self.first(x.to("cuda:0")).to("cuda:1"))
        model = Split()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(3):
            loss = model(torch.randn(32, 1024)).pow(2).mean()
            loss.backward()
            assert model.first[0].weight.grad.device.index == 0 and model.second.weight.grad.device.index == 1
            optimizer.step()
            optimizer.zero_grad()
        print(torch.cuda.max_memory_allocated(0), torch.cuda.max_memory_allocated(1))
    """,
            **TWO,
        )
    )
    first, second = map(int, ran.out.split())
    weights = 4096 * 1024 * 4, 4096 * 8192 * 4
    assert (
        4 * weights[0] < first < 6.5 * weights[0]
    )  # the weight, its gradient, two of AdamW's, and what a step takes beside
    assert 4 * weights[1] < second < 6.5 * weights[1]


def test_data_parallel(dry_run):
    ran = good(
        dry_run(
            """
        import torch
        from torch import nn
        model = nn.DataParallel(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            out = model(torch.randn(64, 2048, device="cuda"))
            assert out.shape == (64, 10) and out.device.index == 0
            nn.functional.cross_entropy(out, torch.randint(10, (64,), device="cuda")).backward()
            assert model.module[0].weight.grad.device.index == 0
            optimizer.step()
            optimizer.zero_grad()
        print(torch.cuda.max_memory_allocated(0), torch.cuda.max_memory_allocated(1))
    """,
            **TWO,
        )
    )
    first, second = map(int, ran.out.split())
    weight = 2048 * 2048 * 4
    assert second >= 2 * weight, "a copy of the weights and their gradients"
    assert first > second


def test_streams_belong_to_their_gpu(dry_run):
    good(
        dry_run(
            """
        import torch
        stream = torch.cuda.Stream(1)
        assert stream.device == torch.device("cuda", 1) and torch.cuda.current_stream(1) != stream
        with torch.cuda.stream(stream):
            assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == stream
            x = torch.empty(1 << 20, device="cuda")
        assert torch.cuda.current_device() == 0 and torch.cuda.current_stream(1) == torch.cuda.default_stream(1)
        assert x.device.index == 1
        y = torch.empty(1 << 20, device="cuda:1")
        del x
        torch.empty(1 << 20, device="cuda:1")
        assert torch.cuda.memory_reserved(1) == 2 * (20 << 20), "a block of another stream is not used again"
    """,
            **TWO,
        )
    )


def test_a_stream_of_any_kind_belongs_to_the_gpu_that_is_named(dry_run):
    ran = dry_run(
        """
        import torch
        one, other = torch.Stream(device="cuda:1"), torch.cuda.Stream(0)
        assert one.device == torch.device("cuda:1") and other.device == torch.device("cuda:0")
        assert torch.Stream("cuda:0").device.index == 0 and torch.Event(device="cuda", enable_timing=True).query()
    """,
        **TWO,
    )
    good(ran)
