"""`faultline plan` from the outside: real programs, run by PyTorch on the CPU, with the binary under test."""

import json
import os
import re
import signal
import subprocess
import sys

import jsonschema
import pytest

from common import ROOT, SCHEMA

pytest.importorskip("torch")

TRAIN = """
import torch
from torch import nn
batch_size = 8
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU()) for _ in range(6)]).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(100):
    loss = model(torch.randn(batch_size * 8192, 1024, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
"""


def planner(binary, place):
    """Runs a program under plan in the folder `place`; the report is the JSON that is kept."""
    environment = {"FAULTLINE_HOME": str(ROOT), **os.environ}

    def plan(source, *options, arguments=(), run="run"):
        (place / "program.py").write_text(source)
        folder = place / run
        done = subprocess.run(
            [
                binary,
                "plan",
                "--steps",
                "2",
                "--seconds",
                "0",
                "-o",
                str(folder),
                *options,
                "--",
                sys.executable,
                "program.py",
                *arguments,
            ],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
        )
        report = folder / "report.json"
        done.report = json.loads(report.read_text()) if report.exists() else None
        done.folder = folder
        if done.report is not None:
            jsonschema.validate(done.report, SCHEMA)
        return done

    plan.environment = environment
    return plan


@pytest.fixture
def plan(binary, tmp_path):
    return planner(binary, tmp_path)


@pytest.fixture(scope="module")
def too_large(binary, tmp_path_factory):
    """The plan of a program that does not fit, with everything that plan tries then: half a minute, so it is made once."""
    return planner(binary, tmp_path_factory.mktemp("too_large"))(
        TRAIN, "--gpu", "2GiB", "--try"
    )  # also where the machine is so busy that the first run takes long


uses_too_large = pytest.mark.xdist_group("too_large")
uses_fitting = pytest.mark.xdist_group("fitting")


@pytest.fixture(scope="module")
def fitting(binary, tmp_path_factory):
    return planner(binary, tmp_path_factory.mktemp("fitting"))(TRAIN, "--gpu", "T4")


def first_stand_in(report):
    """The number that the program was given for its loss, as the report tells it: a mean of squares, so not below 0."""
    (note,) = (note for note in report["plan"]["notes"] if note["kind"] == "value")
    value = re.search(r"\(first ([\d.]+)\)", note["text"])[1]
    assert float(value) >= 0 and note["line"].endswith("program.py:12"), note
    return value


@uses_fitting
def test_a_program_that_fits_says_how_much_it_needs(fitting):
    done = fitting
    assert done.returncode == 0, done.stderr
    verdict = done.report["plan"]
    assert verdict["verdict"] == "fits"
    assert verdict["steps"] == 2 and verdict["stopped"]
    parameters = 12 * (1024 * 1024 + 1024) * 4
    assert parameters <= verdict["peak"]["live"]["parameters"] <= parameters + 12 * 2 * 512
    assert (
        verdict["context"] + verdict["peak"]["allocated"]
        <= verdict["needed"]
        <= verdict["taken"]
        <= verdict["gpu"]["capacity"]
    )
    assert (
        done.stdout == f"loss {first_stand_in(done.report)}\n"
    )  # the program's own output until its second step, and nothing of ours
    assert done.stderr.lstrip().startswith("FITS on Tesla T4")


@uses_fitting
def test_the_parts_at_the_peak_add_up_to_what_is_allocated(fitting):
    verdict = fitting.report["plan"]
    assert sum(verdict["peak"]["live"].values()) == verdict["peak"]["allocated"]
    assert sum(module["bytes"] for module in verdict["modules"]) == verdict["peak"]["allocated"]


@uses_too_large
def test_a_program_that_does_not_fit_names_the_line_and_what_helps(too_large):
    done = too_large
    assert done.returncode == 1, done.stderr
    verdict = done.report["plan"]
    assert verdict["verdict"] == "does-not-fit"
    assert verdict["needed"] > verdict["gpu"]["capacity"]
    assert verdict["failure"]["location"]["line"] == 8 and verdict["failure"]["step"] == 1
    finding = done.report["findings"][0]
    assert finding["rule"] == "memory/out-of-memory" and finding["location"]["line"] == 8
    found = verdict["vary"]
    assert found["name"] == "batch_size" and found["current"] == 8 and "program.py:4" in found["where"]
    assert 1 <= found["largest_fitting"] < found["smallest_failing"] <= 8
    checkpoint = next(change for change in verdict["changes"] if "checkpoint" in change["what"])
    assert checkpoint["tried"] and checkpoint["saves"] > 0 and "Sequential" in checkpoint["detail"]
    saving = [change for change in verdict["changes"] if change["tried"] and change["saves"]]
    assert len(saving) >= 2, verdict["changes"]
    for change in saving:  # confirmed is what makes it fit, and nothing less
        attempt = next(attempt for attempt in finding["tries"] if attempt["what"].startswith(change["what"]))
        assert attempt["confirmed"] is (True if change["fits"] else None) and (
            "not enough alone" in attempt["what"]
        ) == (not change["fits"])


@uses_too_large
def test_the_batch_that_was_found_fits_and_the_next_does_not(plan, too_large):
    found = too_large.report["plan"]["vary"]
    for value, status in ((found["largest_fitting"], 0), (found["smallest_failing"], 1)):
        again = plan(
            TRAIN.replace("batch_size = 8", f"batch_size = {value}"), "--gpu", "2GiB", "--no-try", run=f"again-{value}"
        )
        assert again.returncode == status, again.stderr


def test_without_a_gpu_the_catalogue_is_judged(plan):
    done = plan(TRAIN)
    assert done.returncode == 0, done.stderr
    fits = done.report["plan"]["fits"]
    assert len(fits) > 20
    verdict = done.report["plan"]
    needed = verdict["needed"] - verdict["context"]  # beside the context, which is each card's own
    assert [fit["fits"] for fit in fits] == [
        needed + fit["context"] <= fit["capacity"] for fit in fits
    ] and fits == sorted(fits, key=lambda fit: fit["capacity"])
    assert verdict["verdict"] == "measured" and verdict["gpu"] is None


def test_a_failure_that_the_program_catches_is_a_finding_and_no_verdict(plan):
    done = plan(
        "import torch\ntry:\n    torch.empty(40 << 30, device='cuda', dtype=torch.uint8)\nexcept torch.OutOfMemoryError:\n    pass\nx = torch.ones(10, device='cuda')\n",
        "--gpu",
        "T4",
    )
    assert done.report["plan"]["verdict"] == "fits" and done.report["plan"]["caught_failures"] == 1
    assert done.returncode == 1
    assert done.report["findings"][0]["location"]["line"] == 3 and done.report["findings"][0]["severity"] == "warning"
    assert "after an out-of-memory that the program caught" in " ".join(done.stderr.split())


TWO_PROCESSES = """
import torch, torch.multiprocessing as mp
def work(rank):
    x = torch.empty(SIZE << 30, dtype=torch.uint8, device="cuda")
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""

# program → (verdict, status, what is printed)
ENDS = {
    "two processes that fit together": (TWO_PROCESSES.replace("SIZE", "3"), "fits", 0, "take up to 6.28 GiB together"),
    "two processes that may not": (TWO_PROCESSES.replace("SIZE", "8"), "not-planned", 2, "16.28 GiB together"),
    "a process of several that does not fit": (TWO_PROCESSES.replace("SIZE", "20"), "does-not-fit", 1, "too little"),
    "gives up after an out-of-memory": (
        "import sys, torch\ntry:\n    torch.empty(40 << 30, device='cuda', dtype=torch.uint8)\nexcept RuntimeError:\n    sys.exit(1)\n",
        "does-not-fit",
        1,
        "It needs 40.14 GiB",
    ),
    "never on the GPU": ("import torch\ntorch.ones(3)\n", "not-planned", 2, "ran to its end without using it"),
    "a second GPU": (
        "import torch\nx = torch.ones(3, device='cuda:0')\ny = torch.ones(3, device='cuda:1')\n",
        "not-planned",
        2,
        "more GPUs than the plan has",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_no_end_is_taken_for_a_fit(plan, name):
    program, verdict, status, said = ENDS[name]
    done = plan(program, "--gpu", "T4", "--no-try")
    assert done.report["plan"]["verdict"] == verdict, done.stderr
    assert done.returncode == status
    assert said in " ".join(done.stderr.split()), done.stderr


def test_inference_that_keeps_its_graph_is_confirmed_to_fit_without(plan):
    source = "import torch\nmodel = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(32)]).cuda().eval()\nkept = []\nfor _ in range(8):\n    kept.append(model(torch.randn(8192, 2048, device='cuda')).mean(1))\n"
    done = plan(source, "--gpu", "T4", "--try")
    verdict = done.report["plan"]
    assert verdict["verdict"] == "does-not-fit"
    [change] = [change for change in verdict["changes"] if change["remedies"] == ["no_grad"]]
    assert "torch.no_grad()" in change["what"] and change["fits"] and change["tried"]
    again = plan(
        source.replace("\nfor _", "\ntorch.set_grad_enabled(False)\nfor _"), "--gpu", "T4", "--no-try", run="again"
    ).report["plan"]
    assert again["verdict"] == "fits" and abs(again["needed"] - change["needed"]) <= 4 << 20  # as advised, so it is


def test_an_exception_of_the_programs_own_is_told_with_its_line(plan):
    done = plan("import torch\nx = torch.ones(10, device='cuda')\nraise ValueError('no such dataset')\n", "--gpu", "T4")
    assert done.returncode == 2
    verdict = done.report["plan"]
    assert verdict["verdict"] == "program-error"
    assert verdict["exception"]["type"] == "ValueError" and verdict["exception"]["location"]["line"] == 3
    assert "ValueError: no such dataset" in done.stderr


def test_a_shape_that_does_not_fit_is_a_finding(plan):
    done = plan("import torch\nx = torch.ones(3, 4, device='cuda')\nx @ x\n", "--gpu", "T4")
    assert done.returncode == 1
    assert any(
        finding["rule"] == "tensor/shape-mismatch" and finding["location"]["line"] == 3
        for finding in done.report["findings"]
    )


def test_a_program_without_pytorch_gets_one_sentence(plan):
    done = plan("print('hello')\n", "--gpu", "T4")
    assert done.returncode == 2 and done.stdout == "hello\n"
    assert done.stderr.startswith("faultline: nothing was planned") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--gpu", "T4"], "behind --"),
        (["--gpu", "nosuch", "--", "true"], "--gpu"),
        (["--", "/no/such/program"], "was not found"),
        (["-o", "/proc/nowhere", "--", "true"], "could not be made"),
        (["--context", "1GiB", "--", "true"], "--context needs --gpu"),
    ],
)
def test_bad_usage_is_one_sentence(plan, binary, arguments, sentence, tmp_path):
    done = subprocess.run(
        [binary, "plan", *arguments], cwd=tmp_path, env=plan.environment, capture_output=True, text=True
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_json_stands_alone_on_standard_output(plan):
    done = plan(TRAIN, "--gpu", "T4", "--format", "json")
    told = json.loads(done.stdout)
    assert told["plan"]["verdict"] == "fits" and told == done.report
    assert done.stderr == f"loss {first_stand_in(told)}\n"


@uses_too_large
def test_a_run_folder_is_explained_again(binary, too_large):
    done = too_large
    again = subprocess.run(
        [binary, "explain", "--format", "json", str(done.folder)],
        cwd=done.folder.parent,
        capture_output=True,
        text=True,
    )
    assert again.returncode == done.returncode
    assert json.loads(again.stdout) == done.report


def test_an_empty_folder_is_no_run(binary, tmp_path):
    done = subprocess.run([binary, "explain", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2 and "no run" in done.stderr


def test_the_interrupt_key_reaches_the_program_and_what_was_seen_is_told(plan, binary, tmp_path):
    (tmp_path / "program.py").write_text(
        "import torch, time\nx = torch.ones(1 << 20, device='cuda')\nprint('ready', flush=True)\ntime.sleep(3600)\n"
    )
    process = subprocess.Popen(
        [binary, "plan", "--gpu", "T4", "-o", "run", "--", sys.executable, "program.py"],
        cwd=tmp_path,
        env=plan.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 2 and "KeyboardInterrupt" in errors
    assert json.loads((tmp_path / "run" / "report.json").read_text())["plan"]["verdict"] == "interrupted"


# Programs that caught an out-of-memory before they died of one: (the program, the line it dies at, what it then asked for).
CAUGHT = {
    "an error that is kept": (
        """import torch
def f(n):
    a = torch.empty(n, 1 << 28, device="cuda")
    b = torch.empty(n, 1 << 28, device="cuda")
try: f(8)
except torch.cuda.OutOfMemoryError as e: err = e
x = torch.empty(7, 1 << 28, device="cuda")
""",
        7,
        "7.00 GiB",
    ),
    "tries smaller ones": (
        """import torch
for n in (40, 30, 20):
    try: torch.empty(n, 1 << 28, device="cuda")
    except torch.cuda.OutOfMemoryError: pass
x = torch.empty(18, 1 << 28, device="cuda")
""",
        5,
        "18.00 GiB",
    ),
    "none before": (
        """import torch
y = torch.empty(2, 1 << 28, device="cuda")
x = torch.empty(18, 1 << 28, device="cuda")
""",
        3,
        "18.00 GiB",
    ),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_the_failure_that_is_named_is_the_one_it_died_of(plan, name):
    source, line, asked = CAUGHT[name]
    done = plan(source, "--gpu", "T4", "--no-try")
    assert done.report["plan"]["verdict"] == "does-not-fit"
    first = next(finding for finding in done.report["findings"] if finding["rule"] == "memory/out-of-memory")
    assert (first["location"]["line"], done.report["plan"]["failure"]["location"]["line"]) == (line, line)
    assert first["message"].startswith(asked)


def test_a_request_that_failed_is_not_told_by_the_tensor_of_the_next_attempt(plan):
    done = plan(
        """import torch
m = torch.nn.Linear(1024, 1024).cuda()
def step(n): return m(torch.empty(n, 1024, 1024, device="cuda")).sum()
try: x = torch.empty(1408, 1024, 1024, device="cuda"); y = torch.empty(1408, 1024, 1024, device="cuda"); x.sort()
except torch.cuda.OutOfMemoryError: x = y = None
step(704)
""",
        "--gpu",
        "T4",
        "--no-try",
    )
    told = [finding["memory"] for finding in done.report["findings"] if finding["rule"] == "memory/out-of-memory"]
    assert told and not any("704" in text for text in told)


def test_two_numbers_of_a_line_stand_in_one_place(plan):
    program = """import torch
def make(batch_size): return torch.randn(batch_size, 1 << 20, device="cuda")
kept = [make(batch_size=8), make(batch_size=300)]
"""
    done = plan(program, "--gpu", "1500MiB")
    found = done.report["plan"]["vary"]
    assert (found["current"], found["where"]) == (300, "program.py:3"), found
    assert 100 < found["largest_fitting"] < 216
