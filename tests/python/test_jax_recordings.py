"""Logs of JAX programs that ran on an H200 (JAX 0.11.2, scripts/jax_accuracy/record.py): every allocation is where the model of the pool puts it."""

import json
import subprocess

import pytest

from common import ROOT

RECORDED = ROOT / "tests/fixtures/jax"
FAILED = {"oom_growth_regions", "oom_list"}


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.log.xz")), ids=lambda path: path.name.partition(".")[0])
def test_every_allocation_is_placed_as_it_was(binary, path):
    done = subprocess.run([binary, "explain", "--format", "json", str(path)], capture_output=True, text=True)
    report = json.loads(done.stdout)
    models = [device["model"] for device in report["devices"]]
    assert sum(model["placements"] for model in models) > 10
    assert all(model["exact"] == model["placements"] for model in models), models
    failed = path.name.partition(".")[0] in FAILED
    assert done.returncode == (1 if failed else 0)
    assert {finding["rule"] for finding in report["findings"] if finding["severity"] == "error"} == (
        {"memory/out-of-memory"} if failed else set()
    )


def test_it_is_called_jax_and_the_hosts_pool_is_no_gpu(binary):
    done = subprocess.run(
        [binary, "explain", str(RECORDED / "oom_growth_regions.log.xz")], capture_output=True, text=True
    )
    assert "JAX's pool GPU_0_bfc" in " ".join(done.stdout.split()) and "TensorFlow" not in done.stdout, done.stdout
    assert "GPU 2" not in done.stdout and "\n  host " in done.stdout


@pytest.mark.parametrize("name", ["oom_huge", "oom_growth_regions", "oom_taken_by_another"])
def test_a_text_without_a_framework_is_not_called_tensorflows(binary, name):
    done = subprocess.run([binary, "explain", str(RECORDED / f"{name}.txt.xz")], capture_output=True, text=True)
    assert done.stdout.split("\n")[1].strip().startswith(("TensorFlow or JAX", "JAX")), done.stdout
