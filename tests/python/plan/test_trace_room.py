"""A dry run whose trace cannot be written to its end gives no verdict."""

import json
import resource
import subprocess
import sys

import pytest

from common import FAULTLINE

pytest.importorskip("torch")

PROGRAM = """
import torch
kept = [torch.empty(1 << 20, device="cuda") for _ in range(64)]
for _ in range(30_000):
    torch.empty(1 << 20, device="cuda")
kept += [torch.empty(1 << 30, device="cuda") for _ in range(3)]
"""


@pytest.mark.parametrize("room, verdict", [(resource.RLIM_INFINITY, "fits"), (64 << 10, "not-planned")])
def test_a_disk_without_room_for_the_trace_gives_no_verdict(tmp_path, room, verdict):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run(
        [FAULTLINE, "plan", "--gpu", "T4", "--no-try", "--format", "json", "--", sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY)),
    )
    plan = json.loads(done.stdout)["plan"]
    assert plan["verdict"] == verdict, done.stdout + done.stderr
    assert done.returncode == (0 if verdict == "fits" else 2)
