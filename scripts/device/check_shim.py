#!/usr/bin/env python3
"""Checks on a real GPU what the Python side of `faultline run` does with PyTorch: history, snapshots, marks' neutrality, forks, errors.

    python3 scripts/device/check_shim.py [case ...]

Each case is a small program, run with the Python side armed and without the capture library. A line per case; exit status 1 if one fails.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = {}


def case(program, options=None):
    def register(check):
        CASES[check.__name__] = (textwrap.dedent(program), options or {}, check)
        return check

    return register


class Left:
    """What a program left in its folder."""

    def __init__(self, folder, process, seconds):
        self.status, self.out, self.err, self.seconds = process.returncode, process.stdout, process.stderr, seconds
        self.folder = folder
        self.pickles = sorted(path.name.split("-", 2)[2][:-7] for path in folder.glob("torch-*.pickle"))
        self.processes = sorted(
            (json.loads(path.read_text()) for path in folder.glob("process-*.json")),
            key=lambda known: known["start_ns"],
        )
        self.notes = "".join(path.read_text() for path in folder.glob("notes-*.txt"))

    @property
    def known(self):
        assert len(self.processes) == 1, [p["argv"] for p in self.processes]
        return self.processes[0]

    def snapshot(self, reason):
        (path,) = self.folder.glob(f"torch-*-{reason}.pickle")
        with open(path, "rb") as file:
            return pickle.load(file)  # our own file, written a moment ago


def run(program, options, armed=True):
    folder = Path(tempfile.mkdtemp())
    (folder / "program.py").write_text(program)
    (folder / "left").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    if armed:
        environment.update(
            FAULTLINE_RUN_FOLDER=str(folder / "left"),
            FAULTLINE_RUN_OPTIONS=json.dumps(options),
            PYTHONPATH=os.pathsep.join(
                [str(ROOT / "python/faultline/_inject"), str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
            ),
        )
    begin = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=180, env=environment
    )
    return Left(folder / "left", process, time.perf_counter() - begin)


def entries(snapshot, action=None):
    return [
        entry for trace in snapshot["device_traces"] for entry in trace if action is None or entry["action"] == action
    ]


def lines(entry):
    return [frame["line"] for frame in entry.get("frames", ()) if frame["filename"].endswith("program.py")]


@case("""
    import torch
    assert not torch.cuda.is_initialized()
    x = torch.empty(1 << 20, device="cuda")
    assert torch._C._cuda_isHistoryEnabled()
    y = x * 2
    del x
""")
def history_begins_with_cuda_and_ends_in_a_snapshot(left):
    assert left.status == 0 and left.pickles == ["exit"] and left.notes == "", (
        left.status,
        left.pickles,
        left.notes,
        left.err,
    )
    taken = left.snapshot("exit")
    assert [lines(entry)[:1] for entry in entries(taken, "alloc")[:2]] == [[4], [6]], entries(taken)
    known = left.known
    assert (
        known["torch"]["history"]["entries"] == 200000
        and known["torch"]["devices"][0]["total_bytes"] > 0
        and known["exit_status"] is None
    )
    assert known["start_ns"] < known["torch"]["initialized_ns"] < known["end_ns"]
    assert (
        known["torch"]["initialized_ns"] / 1000 - 1e5 < entries(taken)[0]["time_us"] < known["end_ns"] / 1000 + 1e5
    ), "PyTorch's clock is not ours"
    return known["torch"]["devices"][0]["name"]


@case(
    """
    import torch
    for _ in range(3000):
        x = torch.empty(1000, device="cuda")
""",
    {"history_entries": 1000},
)
def history_is_bounded(left):
    assert len(entries(left.snapshot("exit"))) <= 1000 and left.known["torch"]["history"]["entries"] == 1000


@case(
    """
    import torch
    x = torch.empty(1000, device="cuda")
    assert not torch._C._cuda_isHistoryEnabled()
""",
    {"history": False},
)
def history_can_be_off(left):
    taken = left.snapshot("exit")
    assert left.status == 0 and not entries(taken) and len(taken["segments"]) == 1


@case("""
    import torch
    torch.cuda.set_per_process_memory_fraction(0.01)
    keep = [torch.empty(1 << 20, device="cuda") for _ in range(4)]
    for _ in range(5):
        try:
            torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
    print("went on")
""")
def caught_out_of_memory_leaves_three_snapshots_and_the_exit(left):
    assert left.status == 0 and left.out == "went on\n" and left.pickles == ["exit", "oom", "oom-2", "oom-3"], (
        left.pickles
    )
    failed = entries(left.snapshot("oom"), "oom")
    assert len(failed) == 1 and lines(failed[0]) == [7], failed
    assert (
        abs(left.known["torch"]["memory_fractions"]["0"] - 0.01) < 1e-6
        and left.known["torch"]["out_of_memory_count"] == 5
    )


@case("""
    import torch
    def grow():
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    grow()
""")
def uncaught_out_of_memory(left):
    assert left.status == 1 and left.pickles == ["oom"], left.pickles
    problem = left.known["exception"]
    assert (
        problem["kind"] == "memory"
        and problem["at"]["line"] == 4
        and problem["at"]["function"] == "grow"
        and "OutOfMemoryError" in problem["type"]
    )


@case("""
    import torch
    model = torch.nn.Linear(1 << 10, 1 << 10, device="cuda")
    x = torch.randn(1 << 10, 1 << 10, device="cuda")
    torch.cuda.set_per_process_memory_fraction(0.0008)
    while True:
        x = torch.cat([x, torch.sigmoid(model(x))])
        x.sum().backward()
        x = x.detach()
""")
def out_of_memory_in_forward_or_backward_of_a_growing_program(left):
    assert left.status == 1 and left.pickles == ["oom"] and left.known["exception"]["at"]["line"] in (7, 8), (
        left.pickles,
        left.err[-400:],
    )


ASSERT = """
    import torch
    table = torch.nn.Embedding(10, 4, device="cuda")
    def look_up(ids):
        return table(ids)
    y = look_up(torch.tensor([3, 12], device="cuda"))
    print(y.sum().item())
"""


@case(ASSERT)
def device_side_assert(left):
    assert (
        left.status == 1 and left.known["exception"]["kind"] == "device" and left.known["exception"]["at"]["line"] == 7
    ), left.known["exception"]
    assert left.pickles == ["error"] or "no snapshot" in left.notes, (left.pickles, left.notes)
    plain = run(textwrap.dedent(ASSERT), {}, armed=False)
    last = [ran.err[ran.err.index("Traceback") :].replace(str(ran.folder.parent), "") for ran in (plain, left)]
    assert last[0] == last[1], last
    return ", ".join(left.pickles) or left.notes.strip()


@case("""
    import torch, pickle
    torch.cuda.memory._record_memory_history(max_entries=50, stacks="python")
    for _ in range(100):
        x = torch.empty(1000, device="cuda")
    torch.cuda.memory._dump_snapshot("mine.pickle")
    print(len(pickle.load(open("mine.pickle", "rb"))["device_traces"][0]))
    torch.cuda.memory._record_memory_history(enabled=None)
""")
def the_programs_own_history_is_kept(left):
    assert (
        left.status == 0 and left.out == "50\n" and left.notes.count("switches PyTorch's memory history itself") == 1
    ), (left.out, left.err, left.notes)


@case("""
    import os, torch
    child = os.fork()
    if child == 0:
        print(torch.ones(3, device="cuda").sum().item(), flush=True)
        raise SystemExit(0)
    print(os.waitpid(child, 0)[1], flush=True)
    print(torch.ones(2, device="cuda").sum().item())
""")
def fork_before_cuda_works_and_each_has_its_snapshot(left):
    assert left.out == "3.0\n0\n2.0\n" and left.pickles == ["exit", "exit"], (left.out, left.err, left.pickles)


@case("""
    import os, sys, torch
    x = torch.ones(2, device="cuda")
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
""")
def a_child_forked_after_cuda_writes_no_snapshot(left):
    assert left.status == 0 and left.pickles == ["exit"] and len(left.processes) == 2


@case("""
    import torch
    def work(rank):
        x = torch.full((1000,), float(rank), device="cuda")
        print(x.mean().item(), flush=True)
    if __name__ == "__main__":
        torch.multiprocessing.spawn(work, nprocs=2)
""")
def spawned_processes_have_their_own(left):
    assert (
        sorted(left.out.split()) == ["0.0", "1.0"] and left.pickles == ["exit", "exit"] and len(left.processes) == 3
    ), (left.pickles, left.err)


@case("""
    import torch
    class Items(torch.utils.data.Dataset):
        def __len__(self): return 64
        def __getitem__(self, i): return torch.full((100,), float(i))
    x = torch.ones(1, device="cuda")
    total = 0
    for batch in torch.utils.data.DataLoader(Items(), batch_size=8, num_workers=2, pin_memory=True):
        total += batch.to("cuda", non_blocking=True).sum().item()
    print(total)
""")
def data_workers(left):
    assert left.out == "201600.0\n" and left.pickles == ["exit"] and len(left.processes) == 1


@case("""
    import time, torch
    def nested(depth):
        return torch.empty(1000, device="cuda") if depth == 0 else nested(depth - 1)
    for _ in range(100000):
        nested(20)
    torch.cuda.synchronize()
    print(time.time_ns())
""")
def a_full_history_is_written_in_seconds(left):
    (path,) = left.folder.glob("torch-*-exit.pickle")
    taken = left.snapshot("exit")
    return f"{len(entries(taken))} entries, {path.stat().st_size / 1e6:.1f} MB, {(left.known['end_ns'] - int(left.out)) / 1e9:.2f} s"


@case("""
    import cupy
    x = cupy.zeros(10)
    cupy.RawKernel('extern "C" __global__ void far(float* x) { x[1ull << 38] = 1; }', "far")((1,), (1,), (x,))
    cupy.cuda.Device().synchronize()
""")
def an_error_of_cupys_is_one_of_the_device(left):
    if "No module named" in left.err:
        return "cupy is not installed"
    assert (
        left.status == 1 and left.known["exception"]["kind"] == "device" and left.known["exception"]["at"]["line"] == 5
    ), left.known["exception"]
    return left.known["exception"]["type"]


@case("""
    import jax, jax.numpy as jnp
    x = jnp.ones((1 << 20, 1 << 20), dtype=jnp.float32)
    x.block_until_ready()
""")
def an_out_of_memory_of_jaxs_is_one_of_memory(left):
    if "No module named" in left.err:
        return "jax is not installed"
    assert (
        left.status == 1
        and left.known["exception"]["kind"] == "memory"
        and left.known["exception"]["at"]["line"] in (3, 4)
    ), left.known["exception"]
    return left.known["exception"]["type"]


def main():
    failed = 0
    for name, (program, options, check) in CASES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        left = None
        try:
            left = run(program, options)
            told = check(left) or ""
            print(f"ok      {left.seconds:5.1f} s  {name.replace('_', ' ')}  {told}", flush=True)
        except Exception as problem:
            failed += 1
            print(
                f"FAILED           {name.replace('_', ' ')}  {type(problem).__name__}: {str(problem)[:600]}\n{left.err[-1500:] if left else ''}",
                flush=True,
            )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
