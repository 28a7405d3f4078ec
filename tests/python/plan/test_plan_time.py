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
