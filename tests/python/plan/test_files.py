"""plan leaves the user's files as they were, and every run of the program begins from the same files and the same standard input."""

import ctypes
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("torch")
HERE = Path(__file__).resolve().parent


def everything(folder):
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in sorted(folder.rglob("*"))
        if not path.relative_to(folder).parts[0] == ".faultline"
    }


def plan(binary, cwd, program, *options, **more):
    done = subprocess.run(
        [binary, "plan", *options, "--", sys.executable, str(program)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        **more,
    )
    folders = sorted(path.parent for path in cwd.glob(".faultline/*/report.json"))
    report = json.loads((folders[-1] / "report.json").read_text()) if folders else None
    return done, report


@pytest.fixture
def home(tmp_path):
    home = tmp_path / "home"
    (home / "old").mkdir(parents=True)
    for name in (
        "handle.pt",
        "removed.pt",
        "buffer.pt",
        "replaced.pt",
        "model.safetensors",
        "weights.npy",
        "state.pkl",
        "by_shell.txt",
        "old/x",
        "count.txt",
    ):
        (home / name).write_text("precious " + name)
    (home / "view.bin").write_bytes(bytes(16))
    return home


def test_however_a_program_writes_the_files_are_as_before(binary, home):
    shutil.copy(HERE / "programs_that_write.py", home)
    before = everything(home)
    done, report = plan(binary, home, "programs_that_write.py", "--gpu", "T4", input="given\n")
    assert done.stdout == "all seen given\n" and report["plan"]["verdict"] == "fits", done.stderr
    assert everything(home) == before
    effects = report["plan"]["effects"]
    assert effects["confined"] and {
        "handle.pt",
        "removed.pt",
        "buffer.pt",
        "replaced.pt",
        "model.safetensors",
        "train.log",
        "made/deep/copy.pt",
        "worker-0",
        "shell.txt",
    } <= set(effects["written"])
    assert (
        set(effects["removed"]) == {"by_shell.txt", "old"}
        and effects["removed_count"] == 2
        and effects["written_count"] == len(effects["written"])
    )
    assert "would have been written" in done.stderr and "yours are as before" in done.stderr
    told = subprocess.run(
        [binary, "explain", str(next(home.glob(".faultline/*/report.json")).parent)],
        capture_output=True,
        text=True,
        timeout=600,
    ).stdout
    assert "would have been written" in told


def test_every_rerun_begins_where_the_first_began(binary, home):
    (home / "program.py").write_text(
        textwrap.dedent("""
        import os, sys
        size = int(sys.stdin.readline())
        os.makedirs("made")                       # fails where a run before left it
        open("count.txt", "a").write("x")
        assert open("count.txt").read() == "precious count.txtx"
        assert sys.stdin.readline() == "second\\n"
        assert not sys.stdin.isatty()
        import torch
        model = torch.nn.Linear(size, size).cuda()
        for step in range(2):
            model(torch.randn(64000, size, device="cuda")).sum().backward()
        torch.save(model.state_dict(), "made/model.pt")
    """)
    )
    before = everything(home)
    # The run on a larger GPU is one rerun; those with changes go the same way.
    done, report = plan(binary, home, "program.py", "--gpu", "3GiB", "--no-try", input="4096\nsecond\nnever read\n")
    plan_part = report["plan"]
    assert (
        plan_part["verdict"] == "does-not-fit" and plan_part["exception"] is None and plan_part["needed"] > 3 << 30
    ), done.stderr
    assert plan_part["trace"].startswith("larger/")
    assert everything(home) == before
    assert not any("mode" == note["kind"] and "ended with" in note["text"] for note in plan_part["notes"])


def forbid_ptrace():
    """A filter as containers have them: the call fails with EPERM."""

    class Step(ctypes.Structure):
        _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(Step))]

    steps = (Step * 4)(
        Step(0x20, 0, 0, 0), Step(0x15, 0, 1, 101), Step(0x06, 0, 0, 0x00050000 | 1), Step(0x06, 0, 0, 0x7FFF0000)
    )
    c = ctypes.CDLL(None, use_errno=True)
    assert c.prctl(38, 1, 0, 0, 0) == 0 and c.prctl(22, 2, ctypes.byref(Program(4, steps)), 0, 0) == 0


def test_where_files_cannot_be_kept_apart_nothing_is_run_unless_allowed(binary, home):
    (home / "program.py").write_text(
        "open('ran', 'w').close()\nimport torch\ntorch.empty(9, device='cuda')\ntorch.save(torch.ones(3, device='cuda'), 'handle.pt')\n"
    )
    refused, report = plan(binary, home, "program.py", "--gpu", "T4", preexec_fn=forbid_ptrace)
    assert (
        refused.returncode == 2
        and refused.stderr.count("\n") == 1
        and "--allow-writes" in refused.stderr
        and not (home / "ran").exists()
        and report is None
    )
    allowed, report = plan(binary, home, "program.py", "--gpu", "T4", "--allow-writes", preexec_fn=forbid_ptrace)
    assert (
        allowed.returncode == 0
        and (home / "ran").exists()
        and not report["plan"]["effects"]["confined"]
        and "for real" in allowed.stderr
    )
    assert (home / "handle.pt").read_text() == "precious handle.pt"  # a checkpoint without values replaces nothing


def test_a_function_of_a_running_program_writes_nothing_either(binary, home):
    program = home / "program.py"
    program.write_text(
        textwrap.dedent("""
        import os, faultline, numpy, torch
        log = open("train.log", "w"); log.write("before\\n"); log.flush()
        view = numpy.memmap("view.bin", dtype="uint8", mode="r+"); view[:] = 1; view.flush()
        def train():
            log.write("inside\\n"); log.flush(); view[:] = 9; view.flush()
            torch.save(torch.nn.Linear(8, 8).cuda().state_dict(), "handle.pt")
            open("fresh", "w").close()
            assert open("train.log").read() == "before\\ninside\\n" and torch.load("handle.pt")["weight"].is_cuda
        plan = faultline.plan(train, gpu="T4")
        assert plan.report["plan"]["command"] == ["function", "train", "at", "program.py:5"] and "yours are as before" in " ".join(str(plan).split())
        log.write("after\\n"); log.close()
        assert plan.fits and set(plan.report["plan"]["effects"]["written"]) == {"train.log", "view.bin", "handle.pt", "fresh"}, plan.report["plan"]
        assert open("train.log").read() == "before\\nafter\\n" and view.sum() == 16 and not os.path.exists("fresh") and open("handle.pt").read() == "precious handle.pt"
    """)
    )
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[2] / "python"), "FAULTLINE": binary}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=home, capture_output=True, text=True, timeout=600, env=environment
    )
    assert done.returncode == 0, done.stderr
