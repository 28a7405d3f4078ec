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


UNREAD = "a result that nobody read is missing silently"


# What JAX 0.11 printed by itself on an H200: the bar without the map, what the driver refused, no exception.
@pytest.mark.parametrize(
    ("name", "says", "cause", "confidence"),
    [
        ("oom_huge", "more than the 2.80 GiB that XLA plans with", "exhausted", "proved"),
        ("oom_growth_regions", "at least 27 % of what it has taken is free", "", "likely"),
        ("oom_taken_by_another", "the driver refused it, down to 1.08 GiB", "outside-framework", "proved"),
        ("oom_platform", "JAX asked the driver for 1.00 GiB", "", "proved"),
        ("oom_async", "GPU 0 had 229.12 MiB free", "exhausted", "proved"),
        ("oom_jit", "XLA's autotuner requested it", "", "likely"),
    ],
)
def test_a_text_of_jax_is_told_with_what_it_holds(binary, name, says, cause, confidence):
    done = subprocess.run(
        [binary, "explain", "--format", "json", str(RECORDED / f"{name}.txt.xz")], capture_output=True, text=True
    )
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding.get("cause", ""), finding["confidence"], finding["severity"]) == (cause, confidence, "error")
    assert says in finding["message"] and (UNREAD in finding["message"]) == (name != "oom_jit"), finding["message"]
    advice = " ".join(str(attempt) for attempt in finding["tries"])
    assert "torch" not in advice.lower() and "survived" not in finding["message"]
    assert "TensorFlow's" not in finding["message"]
    wants_map = name in ("oom_growth_regions", "oom_jit")
    assert ("TF_CPP_MIN_LOG_LEVEL=0 python" in advice) == wants_map, advice
