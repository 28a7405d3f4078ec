"""What `faultline plan` says of a leak in a program that ends with room to spare: one that is proved is a warning that names the GPU and the step at which it is full."""

import json
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

MODEL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(40):
    out = model(torch.randn(256, 512, device="cuda"))
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    KEEP
"""
EVALUATION = """
import torch
weight = torch.randn(512, 512, device="cuda")
results = []
for batch in range(40):
    hidden = torch.relu(torch.randn(512, 512, device="cuda") @ weight)
    KEEP
"""
# program, --gpu, exit status, severity of the leak (none: not told), what stands in its message
CASES = {
    "a graph each step": (MODEL, "kept.append(model(out.detach()))", "T4", 1, "warning", r"T4 would be full at about step [\d,]{4,}\."),
    "its number each step": (MODEL, "kept.append(float(step))", "T4", 0, None, ""),
    "a result each step": (MODEL, "kept.append(out.detach())", "T4", 1, "warning", r"T4 would be full at about step [\d,]{4,}\."),
    "without a GPU": (MODEL, "kept.append(model(out.detach()))", None, 1, "warning", r" GiB\) would be full at about step [\d,]+, .* GiB\) at about [\d,]+"),
    "without a GPU, its number": (MODEL, "kept.append(float(step))", None, 0, None, ""),
    "results of an evaluation": (EVALUATION, "results.append(hidden @ weight)", "T4", 0, "note", "40 tensors made at this line in 40 round.* ran to its end"),
    "the last result": (EVALUATION, "results = [hidden @ weight]", "T4", 0, None, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_leak_of_a_program_that_ends(binary, tmp_path, name):
    program, keep, gpu, status, severity, words = CASES[name]
    (tmp_path / "train.py").write_text(program.replace("KEEP", keep))
    asked = [binary, "plan", *(["--gpu", gpu] if gpu else []), "--format", "json", "--", sys.executable, "train.py"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    report = json.loads(done.stdout)
    leaks = [one for one in report["findings"] if one["rule"] == "memory/leak"]
    assert [one["severity"] for one in leaks] == ([severity] if severity else []), leaks
    assert all(re.search(words, one["message"]) for one in leaks), leaks
    assert done.returncode == status, done.stderr


CUT_SHORT = """
import time, torch
from torch.utils.data import DataLoader
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024)).cuda()
computed, clock, taken = time.process_time, time.monotonic, 0
time.process_time, time.monotonic = lambda: computed() + taken, lambda: clock() + taken
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in DataLoader(range(4000), batch_size=8):
    loss = model(torch.randn(64, 1024, device="cuda")).sum()
    opt.zero_grad(); loss.backward(); opt.step()
    taken += 0.5  # a program that is not quick
losses = []
for batch in DataLoader(range(1600), batch_size=8):
    loss = model(torch.randn(4096, 1024, device="cuda")).sum()
    losses.append(KEPT)
    taken += 0.5
"""


def test_a_loop_that_is_cut_short_and_fills_the_gpu_does_not_fit(binary, tmp_path):
    (tmp_path / "train.py").write_text(CUT_SHORT.replace("KEPT", "loss"))
    asked = [binary, "plan", "--gpu", "T4", "--no-try", "--format", "json", "--", sys.executable, "train.py"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    report = json.loads(done.stdout)
    plan = report["plan"]
    assert (plan["verdict"], plan["until_unit"]) == ("fits-until", "round"), done.stderr
    assert (plan["loop"]["where"], plan["loop"]["rounds"]) == ("train.py:13", 200)
    # 80 MiB and 512 bytes of each round: what the model of the allocator reserves for them, and no less than that
    assert 12 < plan["until_step"] < 15 * 1024 / 80 and plan["needed_at_end"] > 200 * 80 << 20
    assert [
        (one["severity"], one["location"]["line"]) for one in report["findings"] if one["rule"] == "memory/leak"
    ] == [("error", 14)]
    assert done.returncode == 1


FULL_OF_GRAPHS = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
batch_size = 4096
total = 0
for step in range(60):
    out = model(torch.randn(batch_size, 512, device="cuda"))
    loss = out.pow(2).mean()
    opt.zero_grad(); loss.backward(RETAIN); opt.step()
    total += KEPT
"""


@pytest.mark.parametrize("retain, kept, gpu", [("retain_graph=True", "loss", "2GiB"), ("", "loss.detach()", "720MiB")])
def test_where_a_leak_fills_the_gpu_no_smaller_batch_is_looked_for(binary, tmp_path, retain, kept, gpu):
    (tmp_path / "train.py").write_text(FULL_OF_GRAPHS.replace("RETAIN", retain).replace("KEPT", kept))
    asked = [binary, "plan", "--gpu", gpu, "--format", "json", "--", sys.executable, "train.py"]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
    plan = json.loads(done.stdout)["plan"]
    assert plan["verdict"] == "does-not-fit", done.stderr
    leaks = bool(retain)
    assert ("No other change was tried" in plan["changes_skipped"]) == leaks, plan
    assert bool(plan["vary"]) != leaks
    # the verdict is said while changes are still to be tried
    said = done.stderr.index("; trying what would make it fit")
    assert "does not fit" in done.stderr[:said]
    # and before that, what the first run saw
    assert re.search(r"out of memory on a device of .*, at train\.py:\d+; running it once more", done.stderr[:said])
    assert ("faultline: trying " in done.stderr or "looking for" in done.stderr) != leaks
    assert all(done.stderr.index(line) > said for line in ("faultline: trying ", "looking for") if line in done.stderr)


REPLAY_MEMORY = """
from collections import deque
import torch
model = torch.nn.Linear(512, 512, device="cuda")
opt = torch.optim.SGD(model.parameters(), lr=0.1)
memory = deque(maxlen=MOST)
for step in range(100000):
    x = torch.randn(2048, 512, device="cuda")
    memory.append(x)
    opt.zero_grad(); model(x).sum().backward(); opt.step()
"""


@pytest.mark.parametrize("most, budget, status", [(1000, "6GiB", 0), (1000, "1GiB", 1), (10, "1GiB", 0)])
def test_what_is_not_full_yet_is_a_part_of_what_is_needed(binary, tmp_path, most, budget, status):
    """4 MiB each, 40 of which are seen: a thousand of them are told beside what was seen, and held against a budget."""
    (tmp_path / "train.py").write_text(REPLAY_MEMORY.replace("MOST", str(most)))
    asked = [binary, "plan", "--gpu", "T4", "--steps", "40", "--budget", budget, "-o", "run", "--", sys.executable]
    done = subprocess.run([*asked, "train.py"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    plan = json.loads((tmp_path / "run" / "report.json").read_text())["plan"]
    words = " ".join(done.stderr.split())
    assert plan["verdict"] == "fits"
    if most == 10:
        assert plan["needed_at_end"] == 0 and "Memory grows" not in words
        return
    more = (1000 - 40) * (4 << 20)
    assert abs(plan["needed_at_end"] - plan["needed"] - more) < 0.05 * more, plan["needed_at_end"]
    assert "Memory grows until what is kept is full. It then needs about 4." in words
