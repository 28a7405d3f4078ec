"""Needs that are partly estimated: FITS needs the upper end, DOES NOT FIT the lower, and what is between them is said to be."""

import json
import subprocess
import sys

import jsonschema
import pytest

from common import SCHEMA

pytest.importorskip("torch")
CONVOLUTION = """
import torch
net = torch.nn.Conv2d(64, 64, 3, padding=1, bias=False).cuda()
x = torch.randn(16, 64, 256, 256, device="cuda")
with torch.no_grad():
    net(x)
"""
PLAIN = """
import torch
x = torch.randn(16, 64, 256, 256, device="cuda")
y = x * 2
"""


@pytest.fixture(scope="module")
def plan(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("intervals")
    runs = []

    def planned(program, gpu, *options):
        runs.append(gpu)
        (folder / "train.py").write_text(program)
        done = subprocess.run(
            [binary, "plan", "--gpu", gpu, "--context", "300MiB", "--no-try", "-o", f"run{len(runs)}", *options]
            + ["--", sys.executable, "train.py"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        report = json.loads((folder / f"run{len(runs)}" / "report.json").read_text())
        jsonschema.validate(report, SCHEMA)
        return done, report["plan"]

    return planned


@pytest.fixture(scope="module")
def large(plan):
    return plan(CONVOLUTION, "H200")


def test_a_workspace_is_an_interval_and_named(large):
    done, told = large
    assert told["verdict"] == "fits"
    assert told["needed_least"] < told["needed"] < told["needed_most"]
    assert told["peak"]["allocated_least"] < told["peak"]["allocated"] < told["peak"]["allocated_most"]
    (one,) = told["estimates"]
    assert "cuDNN" in one["what"] and one["count"] == 1
    assert " to " in done.stderr and "cuDNN" in done.stderr


def test_what_is_sure_is_one_number(plan):
    done, told = plan(PLAIN, "H200")
    assert told["needed_least"] == told["needed_most"] == 0 and told["estimates"] == []
    assert "stimated" not in done.stderr


def between(told, share):
    low, high = sorted((told["needed_least"], told["needed_most"]))
    return f"{int(low + share * (high - low))}"


@pytest.mark.parametrize(
    "share, verdict",
    [(1.3, {"fits", "fits-tightly"}), (0.9, {"fits-tightly"}), (0.1, {"fits-tightly"}), (-0.1, {"does-not-fit"})],
)
def test_the_verdict_follows_the_ends(plan, large, share, verdict):
    done, told = plan(CONVOLUTION, between(large[1], share))
    assert told["verdict"] in verdict
    undecided = 0 < share < 1
    assert ("MAY NOT FIT" in done.stderr) == undecided
    assert (done.returncode == 0) == (share > 1)


@pytest.mark.parametrize("share, judged", [(1.1, "kept"), (0.5, "neither"), (-0.1, "over")])
def test_a_budget_between_the_ends_is_not_judged(plan, large, share, judged):
    done, told = plan(CONVOLUTION, "H200", "--budget", between(large[1], share))
    assert (told["budget"]["over"] > 0) == (judged == "over")
    assert bool(told["budget"]["why_not"]) == (judged == "neither")
    assert done.returncode == {"kept": 0, "neither": 2, "over": 1}[judged]
