"""What the verdict is not said without, from the outside: programs that fill the GPU on purpose, compiled ones, operations that the user tells of."""

import pytest
from test_plan_cli import planner

pytest.importorskip("torch")

SERVER = """
import torch
weights = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
free, total = torch.cuda.mem_get_info()
share = {share}
blocks = (int(total * share) - (total - free)) >> 27
cache = [torch.empty(1 << 27, dtype=torch.uint8, device="cuda") for _ in range(blocks)]
"""

# It asks, prints, and takes what it takes.
TIGHT = """
import torch
print(torch.cuda.get_device_properties(0).total_memory)
cache = [torch.empty(1 << 27, dtype=torch.uint8, device="cuda") for _ in range(112)]
"""


@pytest.fixture
def plan(binary, tmp_path):
    return planner(binary, tmp_path)


def test_a_server_that_fills_the_gpu_on_purpose_fits_and_is_told_so(plan):
    done = plan(SERVER.format(share=0.97), "--gpu", "T4")
    report = done.report
    told = report["plan"]
    assert told["verdict"] == "fits" and done.returncode == 0, done.stderr
    assert told["filling"]["line"].endswith("program.py:4")
    assert 0.5 < told["filling"]["took_less"] / told["filling"]["told_less"] < 1.1
    assert "It fills the GPU on purpose" in done.stderr and "TIGHTLY" not in done.stderr


def test_a_program_that_only_asks_is_tight(plan):
    done = plan(TIGHT, "--gpu", "T4")
    report = done.report
    assert report["plan"]["verdict"] == "fits-tightly" and report["plan"]["filling"] is None, done.stderr


@pytest.mark.parametrize("share, depends", [(0.6, True), (0.05, True), (0, False)])
def test_without_a_gpu_a_program_that_sizes_itself_by_it_is_given_no_number(plan, share, depends):
    done = plan(f"""
import torch
total = torch.cuda.get_device_properties(0).total_memory
x = torch.empty(int(total * {share}) + (1 << 30), dtype=torch.uint8, device="cuda")
""")
    told = done.report["plan"]
    assert (done.returncode == 4) == depends, done.stderr
    assert ("WHAT IT NEEDS DEPENDS ON THE GPU" in done.stderr) == depends and bool(told["fits"]) != depends
    assert ("\nNEEDS 1." in done.stderr) != depends


def test_sizes_from_values_are_no_plain_fit(plan):
    done = plan(
        "import torch\nx = torch.randn(999, 999, device='cuda')\nn = int(x.max() * 100)\ntorch.zeros(n, 9, device='cuda')\n",
        "--gpu",
        "T4",
    )
    words = "with sizes from a number that is not computed (program.py:3)"
    assert done.returncode == 4 and done.report["plan"]["verdict"] == "fits"
    headline, summary = (
        next(line for line in done.stderr.splitlines() if line.startswith(word)) for word in ("FITS", "SUMMARY")
    )
    assert words in headline and words in summary, done.stderr
    assert words in [note.get("verdict") for note in done.report["plan"]["notes"]]


def test_an_error_of_the_program_comes_before_what_was_seen_of_its_memory(plan):
    done = plan("import torch\nm = torch.nn.Linear(8, 4).cuda()\nm(torch.ones(2, 6, device='cuda'))\n", "--gpu", "T4")
    assert done.returncode == 1
    assert -1 < done.stderr.find("ERROR  tensor/shape-mismatch") < done.stderr.find("NOT PLANNED TO THE END")
    assert "What fills the memory" not in done.stderr and "at the peak" not in done.stderr


def test_a_server_that_takes_more_than_there_is_does_not_fit(plan):
    done = plan(SERVER.format(share=1.3), "--gpu", "T4", "--no-try")
    report = done.report
    assert report["plan"]["verdict"] == "does-not-fit"


def test_the_headline_says_what_was_planned_instead(plan):
    program = """
import torch
model = torch.compile(torch.nn.Linear(64, 64).cuda())
model(torch.randn(8, 64, device="cuda")).sum().backward()
library = torch.library.Library("mine", "DEF")
library.define("told(Tensor a) -> Tensor")
assert torch.ops.mine.told(torch.ones(4, 8, device="cuda")).shape == (4, 16)
"""
    done = plan(program, "--gpu", "T4", "--op-memory", "mine::told=1GiB,shape=0.0x2*0.1")
    report = done.report
    beside = ", run eagerly instead of compiled, with sizes told by --op-memory"
    assert "FITS on Tesla T4" + beside in " ".join(done.stderr.split()), done.stderr
    summary = next(line for line in done.stderr.splitlines() if line.startswith("SUMMARY"))
    assert beside in summary and report["plan"]["needed"] > 1 << 30


def test_an_option_that_cannot_be_meant_is_refused(plan):
    done = plan("import torch", "--op-memory", "told=1GiB")
    assert done.returncode == 2 and "--op-memory: 'told=1GiB': an operation's name is NAMESPACE::NAME" in done.stderr


def test_a_library_that_needs_cuda_to_load_is_no_failure_of_the_program(plan):
    program = """
import torch
torch.ones(3, device="cuda")
raise ImportError("libcudart.so.12: cannot open shared object file: No such file or directory")
"""
    done = plan(program, "--gpu", "T4")
    report = done.report
    assert report["plan"]["verdict"] == "not-planned" and "needs libcudart.so.12" in report["plan"]["unplanned"]
