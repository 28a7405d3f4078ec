"""A program that asks for more GPUs than the plan has is told what to type."""

import json
import subprocess
import sys

import pytest

SPAWN = """
import torch, torch.multiprocessing as mp
def work(rank):
    torch.cuda.set_device(rank)
    torch.zeros(1000, 1000, device="cuda")
if __name__ == "__main__":
    mp.spawn(work, nprocs=4)
"""
DIRECT = "import torch\ntorch.zeros(1000, 1000, device='cuda:2')\n"


def plan(binary, folder, program, gpu):
    (folder / "ranks.py").write_text(program)
    done = subprocess.run(
        [binary, "plan", "--gpu", gpu, "--format", "json", "-o", "left", "--", sys.executable, "ranks.py"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)["plan"]


@pytest.mark.parametrize("program, gpu, typed", ((SPAWN, "T4", "4xT4"), (DIRECT, "24GiB", "3x24576MiB")))
def test_the_command_to_type_is_told(binary, tmp_path, program, gpu, typed):
    told = plan(binary, tmp_path, program, gpu)
    assert told["verdict"] == "not-planned"
    assert f"type: faultline plan --gpu {typed} -- {sys.executable} ranks.py" in told["unplanned"]
    assert "NAME" not in told["unplanned"] and "COMMAND" not in told["unplanned"]


def test_what_is_typed_is_planned(binary, tmp_path):
    assert plan(binary, tmp_path, DIRECT, "3x24576MiB")["verdict"] == "fits"
