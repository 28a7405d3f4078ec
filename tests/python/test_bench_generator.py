"""The benchmark's snapshots are what PyTorch and CPython would have written."""

import lzma
import pickle
import pickletools
import sys
from pathlib import Path

import pytest

from common import ROOT

sys.path.insert(0, str(ROOT / "scripts" / "bench"))

import make_snapshot  # noqa: E402
from caching_allocator import CachingAllocator  # noqa: E402


def load_fixture(name):
    with lzma.open(ROOT / "tests" / "fixtures" / "torch" / (name + ".pickle.xz")) as file:
        return pickle.load(file)


def replay(snapshot):
    """Places the trace's requests anew; returns the allocator and how many allocations and segments came out as recorded."""
    trace = snapshot["device_traces"][0]
    allocator = CachingAllocator([e["addr"] for e in trace if e["action"] == "segment_alloc"])
    live, announced, exact, segments = {}, None, 0, 0
    for event in trace:
        if event["action"] == "segment_alloc":
            announced = (event["addr"], event["size"])
        elif event["action"] == "alloc":
            block, segment = allocator.alloc(event["size"], event["stream"], event["frames"])
            assert (segment and (segment.address, segment.size)) == announced
            assert block.address == event["addr"]
            live[block.address] = block
            exact, segments, announced = exact + 1, segments + bool(segment), None
        elif event["action"] == "free_completed":
            allocator.free(live.pop(event["addr"]))
    return allocator, exact, segments


@pytest.fixture(scope="module")
def workload():
    return make_snapshot.Workload(make_snapshot.read_recording())


def written(plan):
    pieces = []
    count, size_bytes = make_snapshot.write_snapshot(plan, pieces.append)
    return count, size_bytes, b"".join(pieces)


def simulated_throughout(workload, events):
    """The same snapshot without the shortcut for repetitions, and as plain objects."""
    sim = make_snapshot.Simulation(workload)
    whole, cycle = sim.play(workload.setup, 0, events), 0
    while whole:
        whole, cycle = sim.play_cycle(cycle, events), cycle + 1
    annotations = make_snapshot.annotations_until(workload, sim.events[-1]["time_us"])
    return {
        "segments": sim.segments(),
        "device_traces": [sim.events],
        "allocator_settings": workload.settings,
        "external_annotations": annotations,
    }


@pytest.mark.parametrize(
    "name, allocations, segments",
    [("gpt", 2410, 47), ("gpt_oom", 972, 83), ("leak_list", 300, 60), ("streams", 300, 3)],
)
def test_real_requests_get_the_recorded_addresses(name, allocations, segments):
    recorded = load_fixture(name)
    allocator, exact, new_segments = replay(recorded)
    assert (exact, new_segments) == (allocations, segments)
    final = [(b["address"], b["size"], b["requested_size"]) for s in recorded["segments"] for b in s["blocks"]]
    assert [(b.address, b.size, b.requested) for b in allocator.blocks()] == final


def test_the_recording_itself_comes_first(workload):
    recorded = load_fixture("gpt")
    trace = recorded["device_traces"][0]
    plan = make_snapshot.make_plan(workload, events=len(trace))
    keys = ("action", "addr", "size", "stream")
    assert [[e[k] for k in keys] for e in plan.head + plan.tail] == [[e[k] for k in keys] for e in trace]
    shape = [
        (s["address"], s["total_size"], s["allocated_size"], s["requested_size"], len(s["blocks"]), bool(s["frames"]))
        for s in plan.segments
    ]
    # A segment that PyTorch filled from a thread without Python frames has a stack here: history keeps C++ frames by default.
    assert [s[:5] for s in shape] == [
        (s["address"], s["total_size"], s["allocated_size"], s["requested_size"], len(s["blocks"]))
        for s in recorded["segments"]
    ]
    assert sum(s[5] for s in shape) == sum(list(s)[-1] == "frames" for s in recorded["segments"])


# Cut within the set-up, within a cycle, after repetitions, and where a thousand events end.
@pytest.mark.parametrize("events", [3, 500, 1000, 4000, 30000])
def test_the_bytes_are_those_of_cpython(workload, events):
    count, size_bytes, data = written(make_snapshot.make_plan(workload, events=events))
    expected = simulated_throughout(workload, events)
    assert count == len(expected["device_traces"][0]) and events <= count <= events + 1
    assert size_bytes == len(data)
    assert data == pickle.dumps(expected, protocol=4)


def test_repetitions_load_as_if_each_had_been_simulated(workload):
    plan = make_snapshot.make_plan(workload, events=25000)
    assert plan.repeats > 0
    assert pickle.loads(written(plan)[2]) == simulated_throughout(workload, 25000)


def test_an_exact_model_reproduces_every_address_and_the_final_blocks(workload):
    loaded = pickle.loads(written(make_snapshot.make_plan(workload, events=30000))[2])
    allocator, exact, _ = replay(loaded)
    assert exact == sum(e["action"] == "alloc" for e in loaded["device_traces"][0])
    final = [b for s in loaded["segments"] for b in s["blocks"]]
    assert [(b.address, b.size, b.requested) for b in allocator.blocks()] == [
        (b["address"], b["size"], b["requested_size"]) for b in final
    ]
    for block, shown in zip(allocator.blocks(), final):
        assert shown["state"] == ("inactive" if block.frames is None else "active_allocated")
        assert shown["frames"] is block.frames or (block.frames is None and shown["frames"] == [])


def test_it_looks_like_a_real_snapshot(workload):
    data = written(make_snapshot.make_plan(workload, events=8000))[2]
    loaded = pickle.loads(data)
    trace = loaded["device_traces"][0]
    real = {opcode.name for opcode, _, _ in pickletools.genops(lzma.open(make_snapshot.RECORDING).read())}
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= real
    assert [list(e) for e in trace[:1]] == [list(e) for e in load_fixture("gpt")["device_traces"][0][:1]]
    times = [e["time_us"] for e in trace]
    assert times == sorted(times)
    steps = [
        a for a in loaded["external_annotations"] if a["name"].startswith("Optimizer.step") and a["stage"] == "START"
    ]
    assert len(steps) == 4
    assert 20 <= min(len(e["frames"]) for e in trace) and max(len(e["frames"]) for e in trace) <= 113


def test_a_size_in_bytes_is_met_by_repeating_periods(workload):
    wanted = 4 << 20
    _, size_bytes, _ = written(make_snapshot.plan_of_bytes(workload, wanted))
    assert wanted <= size_bytes < wanted + (1 << 20)


def test_a_kept_file_is_not_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(make_snapshot, "CACHE", str(tmp_path))
    path = Path(make_snapshot.make_file(events=2000))
    made_ns = path.stat().st_mtime_ns
    assert make_snapshot.make_file(events=2000) == str(path)
    assert path.stat().st_mtime_ns == made_ns
    assert make_snapshot.make_file(events=2001) != str(path)
