"""torch.no_grad() is offered for the forward passes that no backward pass comes to, and for no other."""

import json
import os
import subprocess
import sys

import pytest

from common import ROOT

pytest.importorskip("torch")

HEAD = """
import torch
from torch import nn
def net():
    return nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)], nn.Linear(256, 10)).cuda()
model, criterion = net(), nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters())
def batch():
    return torch.randn(512, 256, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
def train():
    model.train()
    for _ in range(3):
        x, y = batch()
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
train()
"""
EVALUATE = """
kept = []
model.eval()
for _ in range(12):
    x, y = batch()
    kept.append(criterion(model(x), y))
"""
# what follows the head → the line that is to run without a graph
WITH = {
    "an evaluation in eval mode": EVALUATE,
    "an evaluation in train mode": EVALUATE.replace("model.eval()\n", ""),
    "a sum of losses": EVALUATE.replace("kept = []", "total = 0").replace("kept.append(", "total = total + ("),
    "in a function, and training goes on": "def evaluate():"
    + EVALUATE.replace("\n", "\n    ")
    + "\nevaluate()\ntrain()\n",
    "one function for both": """
def step(kept=[]):
    x, y = batch()
    out = model(x)
    return criterion(out, y)
for _ in range(2):
    loss = step()
    loss.backward()
optimizer.step()
kept = [step() for _ in range(12)]
""",
    "features that are cut off": """
features = net().eval()
for _ in range(12):
    x, y = batch()
    h = features(x)
    loss = criterion(model[4](torch.zeros(512, 256, device="cuda") + h.detach().mean()), y)
    loss.backward()
""",
}
WITHOUT = {
    "an evaluation under no_grad": EVALUATE.replace("for _", "torch.set_grad_enabled(False)\nfor _"),
    "a model trained in eval mode": EVALUATE.replace(
        "kept.append(criterion(model(x), y))", "criterion(model(x), y).backward()"
    ),
    "a backward after many forwards": EVALUATE + "sum(kept).backward()\n",
    "a frozen model in eval mode": """
features = net().eval()
for _ in range(3):
    x, y = batch()
    loss = criterion(model[4](torch.zeros(512, 256, device="cuda") + features(x).mean()), y)
    loss.backward()
""",
    "a model without trained weights": EVALUATE.replace("kept = []", "kept = []\nmodel.requires_grad_(False)"),
}


def offer_of(ran):
    assert ran.status == 0, ran.err
    found = [offer for offer in ran.summary["offers"] if offer["name"] == "no_grad"]
    return found[0] if found else None


@pytest.mark.parametrize("name", WITH)
def test_forward_passes_without_a_backward_are_told_and_run_without_a_graph(binary, tmp_path, name):
    from dry import dry_run

    folders = [tmp_path / "first", tmp_path / "again"]
    for folder in folders:
        folder.mkdir()
    program = tmp_path / "program.py"
    program.write_text(HEAD + WITH[name])
    ran = dry_run(binary, folders[0], program)
    offer = offer_of(ran)
    assert offer is not None and offer["value"] != "true"
    assert "program.py:" in offer["what"] and offer["cost"] == 10
    again = dry_run(binary, folders[1], program, changes={"no_grad": offer["value"]})
    assert again.status == 0 and "no_grad" in again.summary["changes"], again.err
    assert again.summary["steps"] == ran.summary["steps"]
    if name != "features that are cut off":  # a step in which the optimizer's states are is fuller there
        assert again.summary["peak_allocated"] < 0.6 * ran.summary["peak_allocated"]


@pytest.mark.parametrize("name", WITHOUT)
def test_what_a_backward_comes_to_keeps_its_graph(dry_run, name):
    assert offer_of(dry_run(HEAD + WITHOUT[name])) is None


def test_what_was_stopped_may_still_come_to_its_backward(dry_run):
    program = HEAD.replace(
        "\ntrain()\n",
        "\nkept = [model(batch()[0]) for _ in range(4)]\nimport time\ntime.sleep(2)\nfor _ in range(20000): x = batch()[0] + 1\n",
    )
    ran = dry_run(program, seconds=1)
    assert ran.summary["stopped"] and offer_of(ran) is None


SERVE = """
import torch
from torch import nn
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)]).cuda().eval()
kept = []
def serve():
    for _ in range(40):
        out = model(torch.randn(1024, 1024, device="cuda"))
        kept.append(KEPT)
serve()
"""


@pytest.mark.parametrize("kept, at_least_mib", [("out", 160), ("out.mean()", 0)])
def test_a_remedy_under_which_memory_still_grows_is_counted_to_the_end(binary, tmp_path, kept, at_least_mib):
    (tmp_path / "program.py").write_text(SERVE.replace("KEPT", kept))
    subprocess.run(
        [binary, "plan", "--gpu", "2GiB", "--try", "-o", "out", "--", sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "FAULTLINE_HOME": str(ROOT)},
        capture_output=True,
    )
    plan = json.loads((tmp_path / "out/report.json").read_text())["plan"]
    [change] = [change for change in plan["changes"] if change["remedies"] == ["no_grad"]]
    weights, context = 8 * 1024 * 1025 * 4, plan["context"]
    assert change["fits"]
    kept_mib = (change["needed"] - context - weights) / (1 << 20)
    assert at_least_mib <= kept_mib < at_least_mib + 60, change  # of a round and of cuBLAS
