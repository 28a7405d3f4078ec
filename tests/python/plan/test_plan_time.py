"""`faultline plan` keeps its time whatever the program ignores, and whoever ends Faultline ends the program."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common import ROOT

IGNORES = "import signal, sys\nfor one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(one, signal.SIG_IGN)\n"
READY = "import os, time\nprint('ready', os.getpid(), flush=True)\n"
AWAY = "child = os.fork()\nif child == 0:\n    os.setsid()\n    time.sleep(1000)\nprint('child', child, flush=True)\n"
SPINS = "while True: pass\n"
SLEEPS = "while True: time.sleep(1000)\n"


def started(binary, folder, source, *options):
    (folder / "program.py").write_text(source)
    return subprocess.Popen(
        [binary, "plan", "-o", "run", *options, "--", sys.executable, "program.py"],
        cwd=folder,
        env={"FAULTLINE_HOME": str(ROOT), **os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def numbers(output):
    return [int(line.split()[1]) for line in output.splitlines() if line.startswith(("ready", "child"))]


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("writes", [[], ["--allow-writes"]])
@pytest.mark.parametrize(
    "source",
    [READY + SPINS, IGNORES + READY + SPINS, IGNORES + READY + AWAY + SLEEPS],
    ids=["spins", "ignores", "child-away"],
)
def test_a_program_that_does_not_end_is_ended_when_its_time_is_over(binary, tmp_path, source, writes):
    process = started(binary, tmp_path, source, "--seconds", "1", "--grace", "0", *writes)
    output, errors = process.communicate()
    assert process.returncode == 2 and "its time was over" in errors and errors.count("\n") == 1
    assert numbers(output) and not any(is_running(one) for one in numbers(output))


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
@pytest.mark.parametrize("writes", [[], ["--allow-writes"]])
def test_who_ends_faultline_ends_a_program_that_ignores_it(binary, tmp_path, name, writes):
    process = started(binary, tmp_path, IGNORES + READY + SPINS, *writes)
    program = process.stdout.readline()
    process.send_signal(getattr(signal, name))
    time.sleep(0.8)  # that two are not one; how long each gives it, src/process/ending_test.cpp says
    process.send_signal(getattr(signal, name))
    _, errors = process.communicate()
    assert process.returncode == 2 and "interrupted" in errors
    assert not any(is_running(one) for one in numbers(program))


def test_a_program_that_ends_in_time_is_left_alone(binary, tmp_path):
    process = started(
        binary,
        tmp_path,
        "import signal, time\nprint('hello', flush=True)\ntime.sleep(2)\nprint('done')\n",
        "--seconds",
        "1",
        "--grace",
        "600",
    )
    output, errors = process.communicate()
    assert output == "hello\ndone\n" and "its time was over" not in errors


@pytest.mark.parametrize("by", ["time", "signal"])
def test_what_was_seen_until_there_is_told(binary, tmp_path, by):
    pytest.importorskip("torch")
    source = IGNORES + "import torch\nx = torch.empty(1 << 28, device='cuda')\n" + READY + SPINS
    process = started(
        binary, tmp_path, source, "--gpu", "T4", *(["--seconds", "20", "--grace", "5"] if by == "time" else [])
    )
    program = process.stdout.readline()
    if by == "signal":
        process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    plan = json.loads((tmp_path / "run" / "report.json").read_text())["plan"]
    assert (
        process.returncode == 2
        and plan["verdict"] == "interrupted"
        and plan["peak"]["reserved"] == 1 << 30
        and not plan["unplanned"]
    ), errors
    assert not any(is_running(one) for one in numbers(program))


def test_what_was_trained_until_it_was_killed_is_training(binary, tmp_path):
    """It left no summary: its steps, and that it computed gradients, stand in its trace."""
    pytest.importorskip("torch")
    trains = """import torch
model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(64, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    process = started(
        binary, tmp_path, IGNORES + trains + READY + SPINS, "--gpu", "T4", "--seconds", "20", "--grace", "5"
    )
    output, errors = process.communicate()
    plan = json.loads((tmp_path / "run" / "report.json").read_text())["plan"]
    assert process.returncode == 2 and plan["verdict"] == "interrupted", errors
    assert plan["steps"] == 3 and "training" in [phase["name"] for phase in plan["phases"]]
    assert "did not end by itself when its time was over" in " ".join(errors.split())


@pytest.mark.parametrize("gib", [64, 1])
def test_a_process_that_ran_out_of_memory_before_it_was_killed_is_known(binary, tmp_path, gib):
    pytest.importorskip("torch")
    source = f"""import multiprocessing, time
import torch

def work(ready):
    held = torch.empty(1 << 20, device="cuda")
    try:
        held = torch.empty({gib} << 30, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
    ready.set()
    time.sleep(1000)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    worker = context.Process(target=work, args=(ready,))
    worker.start()
    ready.wait()
    x = torch.empty(1 << 24, device="cuda")
    worker.kill()
    worker.join()
"""
    process = started(binary, tmp_path, source, "--gpu", "T4", "--no-try")
    _, errors = process.communicate()
    plan = json.loads((tmp_path / "run" / "report.json").read_text())["plan"]
    assert ("ran out of memory before another ended it" in plan["unplanned"]) == (gib == 64), errors
    assert plan["verdict"] == ("not-planned" if gib == 64 else "fits"), errors


@pytest.mark.parametrize("second", ["ends", "goes on"])
def test_a_replay_that_ends_at_the_failure_makes_nothing_fit(binary, tmp_path, second):
    """With expandable_segments there is room for what had failed; what would follow is known where a second run got there."""
    pytest.importorskip("torch")
    source = f"""import sys, torch
if {second == "ends"} and b"/larger" in open("/proc/self/environ", "rb").read():
    sys.exit()
held = [torch.empty(11 << 20, dtype=torch.uint8, device="cuda") for _ in range(160)]
"""
    process = started(binary, tmp_path, source, "--gpu", "2GiB", "--context", "130MiB")
    output, errors = process.communicate()
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    plan = report["plan"]
    assert plan["verdict"] == "does-not-fit" and plan["needed_is_least"] == (second == "ends"), errors
    assert any(change["fits"] for change in plan["changes"]) == (second != "ends"), plan["changes"]
    assert bool(plan["where"]) == (second != "ends"), plan["where"]
    assert ("ended before the request that had failed" in " ".join(errors.split())) == (second == "ends")
