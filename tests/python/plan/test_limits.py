"""plan --budget and plan --compare from the outside: what is too much, by which lines, and what cannot be compared."""

import json
import subprocess
import sys

import jsonschema
import pytest

from common import SCHEMA

pytest.importorskip("torch")
PROGRAM = """
import sys, torch
layers, batch = map(int, sys.argv[1:])
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(layers)]).cuda()
batches = torch.randn(batch * 1024, 1024, device="cuda")  # <- grown
model(batches).sum().backward()
"""
GROWN_LINE = PROGRAM.split("\n").index('batches = torch.randn(batch * 1024, 1024, device="cuda")  # <- grown') + 1
shares_base = pytest.mark.xdist_group("limits")


class Planner:
    def __init__(self, binary, folder):
        self._binary, self.folder, self._runs = binary, folder, 0
        (folder / "train.py").write_text(PROGRAM)

    def __call__(self, *options, arguments=("2", "8"), gpu=("--gpu", "T4")):
        self._runs += 1
        done = subprocess.run(
            [self._binary, "plan", "--no-try", *gpu, "-o", f"run{self._runs}", *options]
            + ["--", sys.executable, "train.py", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
        )
        kept = self.folder / f"run{self._runs}"
        report = kept / "report.json"
        done.folder, done.report = kept, json.loads(report.read_text()) if report.exists() else None
        if done.report:
            jsonschema.validate(done.report, SCHEMA)
        return done


@pytest.fixture(scope="module")
def plan(binary, tmp_path_factory):
    return Planner(binary, tmp_path_factory.mktemp("limits"))


@pytest.fixture(scope="module")
def base(plan):
    """Written by a plan that keeps its budget."""
    done = plan("--format", "json", "--budget", "2GiB")
    assert done.returncode == 0, done.stderr
    path = plan.folder / "base.json"
    path.write_text(done.stdout)
    report = json.loads(done.stdout)["plan"]
    assert report["budget"]["over"] == 0 and report["budget"]["needed"] == report["needed"] < 2 << 30
    assert report["versions"]["framework"].startswith("PyTorch ") and report["versions"]["faultline"]
    return path


@shares_base
def test_what_grew_and_what_is_over_is_told_by_its_line(plan, base, binary):
    done = plan("--compare", "base.json", "--may-grow", "50MiB", "--budget", "300MiB", arguments=("2", "32"))
    assert done.returncode == 1, done.stderr
    told = {finding["rule"]: finding for finding in done.report["findings"]}
    grown, over = told["memory/grown"], told["memory/over-budget"]
    before, now = json.loads(base.read_text())["plan"]["needed"], done.report["plan"]["needed"]
    assert grown["bytes"] == now - before and over["bytes"] == now - (300 << 20)
    assert grown["location"]["file"].endswith("train.py")
    lines = {line["location"]["line"]: line for line in done.report["plan"]["comparison"]["lines"]}
    assert (lines[GROWN_LINE]["before"], lines[GROWN_LINE]["now"]) == (32 << 20, 128 << 20)
    assert 4 not in lines  # the parameters are as they were
    assert f"train.py:{GROWN_LINE}" in done.stderr and "over the budget" in done.stderr
    again = subprocess.run([binary, "explain", done.folder, "--format", "github"], capture_output=True, text=True)
    assert (
        again.returncode == 1
        and "memory/grown" in again.stdout
        and "::error file=train.py" in again.stdout.replace(str(plan.folder) + "/", "")
    )


@shares_base
def test_what_is_allowed_is_no_finding_and_other_formats_have_it(plan, base):
    done = plan("--compare", "base.json", "--may-grow", "60%", "--format", "sarif", arguments=("2", "10"))
    assert done.returncode == 0 and not done.report["findings"], done.stderr
    assert done.report["plan"]["comparison"]["too_much"] is False and json.loads(done.stdout)["version"] == "2.1.0"


@pytest.mark.parametrize(
    "content, options, words",
    [
        (None, (), "missing.json"),
        ("", (), "empty"),
        *[
            (text, (), "no report of a plan; write one with")
            for text in ("{", "{}", "[]", '{"schema": "x/1"}', "hello")
        ],
        ('{"schema": "faultline.report/1", "plan": {"verdict": "fits",', (), "not whole"),
        ('{"schema": "faultline.report/1"}', (), "something else than a plan"),
        ('{"schema": "faultline.report/1", "plan": []}', (), "something else than a plan"),
        ('{"schema": "faultline.report/1", "plan": {"verdict": "measured", "needed": -5}}', (), "does not say"),
        ('{"schema": "faultline.report/1", "plan": {"verdict": "program-error", "needed": 5}}', (), "program-error"),
        ('{"schema": "faultline.report/1", "plan": {"verdict": "\\u001b[31m", "needed": 5}}', (), "did not come"),
        ('{"schema": "faultline.report/1", "plan": {"verdict": "measured", "needed": 5}}', ("--gpu", "T4"), "Tesla T4"),
        (
            '{"schema": "faultline.report/1", "plan": {"verdict": "fits", "needed": 5, "gpu": {"name": "NVIDIA L4", "capacity": 1}}}',
            ("--gpu", "T4"),
            "NVIDIA L4",
        ),
        ("CUDA error: out of memory", (), "something else than a plan"),
    ],
)
def test_a_base_that_says_nothing_is_refused_before_anything_is_run(binary, tmp_path, content, options, words):
    base = tmp_path / ("missing.json" if content is None else "base.json")
    if content is not None:
        base.write_text(content)
    done = subprocess.run(
        [binary, "plan", "--compare", base, *options, "--", sys.executable, "-c", "open('ran', 'w')"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.startswith("faultline: --compare: "), done
    assert words in done.stderr and "\x1b" not in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"base.json"}


@pytest.mark.parametrize(
    "options, words",
    [
        (("--budget", "lots"), "--budget: 'lots' is not a size"),
        (("--may-grow", "5%"), "--may-grow needs --compare"),
        (("--compare", "x.json", "--may-grow", "some"), "--may-grow: 'some' is neither a share nor a size"),
        (("--compare", "x.json", "--may-grow", "-3%"), "--may-grow: '-3%' is no share"),
    ],
)
def test_options_that_cannot_be_understood(binary, tmp_path, options, words):
    done = subprocess.run(
        [binary, "plan", *options, "--", sys.executable, "-c", ""], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2 and words in done.stderr, done.stderr
