"""Phases of a program, told from what it does; and what comes behind a loop over a DataLoader."""

import pytest

pytest.importorskip("torch")

BEGIN = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 64), nn.Dropout(), nn.Linear(64, 64)).cuda()
teacher = nn.Linear(64, 64).cuda().eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def x(): return torch.zeros(8, 64, device="cuda")
def train():
    model.train()
    for _ in range(2):
        loss = model(x()).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
def evaluate():
    model.eval()
    with torch.no_grad(): model(x())
def generate():
    with torch.no_grad(): return model(x())
def distil():
    model.train()
    for _ in range(2):
        with torch.no_grad(): wanted = teacher(x())
        loss = (model(x()) - wanted).square().sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

CASES = {
    "training alone": ("train()", ["building", "training"]),
    "evaluation after it": ("train(); evaluate()", ["building", "training", "evaluation"]),
    "evaluation before it": ("evaluate(); train()", ["building", "evaluation", "training"]),
    "a teacher is a part of the step": ("distil()", ["building", "training"]),
    "eval mode with a graph": ("train(); model.eval(); model(x())", ["building", "training", "evaluation"]),
    "generation": ("train(); model.eval(); generate()", ["building", "training", "generation"]),
    "saving": ("train(); torch.save(model.state_dict(), 'm.pt')", ["building", "training", "saving"]),
    "saving by safetensors": (
        "train(); from safetensors.torch import save_file; save_file(model.state_dict(), 'm.safetensors')",
        ["building", "training", "saving"],
    ),
    "a part of the model in eval mode, with a graph": (
        "train(); model.eval(); kept = [model[0](x()) for _ in range(2)]",
        ["building", "training", "evaluation"],
    ),
    "another model samples after the loop": (
        "train()\nteacher.train()\nwith torch.no_grad(): teacher(x())",
        ["building", "training", "evaluation"],
    ),
    "a teacher before each step and none after": ("distil(); distil()", ["building", "training"]),
    "nothing runs": ("", ["building"]),
}


@pytest.mark.parametrize("name", CASES)
def test_phases_are_told_from_what_the_program_does(dry_run, name):
    body, phases = CASES[name]
    ran = dry_run(BEGIN + body + "\n", confined=True)
    assert ran.status == 0, ran.err
    assert ran.summary["phases"] == phases


LOOP = (
    BEGIN
    + """
from torch.utils.data import DataLoader
data = [torch.zeros(64)] * 4000
model.train()
seen = 0
for epoch in range(EPOCHS):
    for batch in DataLoader(data, batch_size=4):
        loss = model(batch.cuda()).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        seen += 1
    for batch in DataLoader(data, batch_size=4):
        model.eval()
        with torch.no_grad(): model(batch.cuda())
        seen += 1
    model.train()
torch.save(model.state_dict(), "m.pt")
print(seen)
"""
)
BEHIND = ["building", "training", "evaluation", "saving"]


def test_the_plan_goes_on_behind_a_loop_over_data(dry_run):
    ran = dry_run(LOOP.replace("EPOCHS", "1"), steps=8, go_on=True, confined=True)
    assert ran.status == 0, ran.err
    assert ran.summary["phases"] == BEHIND and ran.summary["steps"] == 8
    assert ran.out == "10\n" and "after 8 optimizer steps, and went on" in ran.summary["stopped"]
    assert ran.summary["not_reached"] == []


def test_it_goes_on_through_some_more_rounds_and_no_further(dry_run):
    ran = dry_run(LOOP.replace("EPOCHS", "1000"), steps=8, go_on=True, confined=True)
    assert ran.summary["phases"] == BEHIND[:3] and ran.summary["steps"] == 16
    assert len(ran.summary["not_reached"]) == 1 and ran.summary["not_reached"][0].startswith("saving (")


def test_where_the_steps_are_asked_for_it_stops_there(dry_run):
    ran = dry_run(LOOP.replace("EPOCHS", "1"), steps=8, confined=True)
    assert ran.summary["steps"] == 8 and ran.summary["stopped"] == "after 8 optimizer steps"
    assert ran.summary["phases"] == BEHIND[:2]
    assert [text.partition(" (")[0] for text in ran.summary["not_reached"]] == ["evaluation", "saving"]


def test_a_program_without_a_limit_is_left_alone(dry_run):
    ran = dry_run(LOOP.replace("EPOCHS", "1").replace("4000", "40"), steps=0, go_on=True, confined=True)
    assert ran.out == "20\n" and not ran.summary["stopped"] and ran.summary["not_reached"] == []


ROUNDS = (
    BEGIN
    + """
from torch.utils.data import DataLoader
def train_on(loader):
    for batch in loader:
        loss = model(x()).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
train_on(DataLoader(range(2000), batch_size=4))
kept = []
class Endless(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(range(800))
for number in LOADER:
    data = torch.randn(64, 64, device="cuda")
    BODY
print("evaluated", number[0].item() // 4 + 1)
"""
)
KNOWN, UNKNOWN = "DataLoader(range(800), batch_size=4)", "DataLoader(Endless(), batch_size=4)"
# the rounds of the loop, and what each does; rounds that were run, and those that there are where memory rose
ROUND_CASES = {
    "losses with their graphs": (KNOWN, "kept.append(model(data).sum())", 12, 200),
    "outputs": (KNOWN, "kept.append(model(data).detach())", 12, 200),
    "of a loader without a length": (UNKNOWN, "kept.append(model(data).sum())", 12, 0),
    "under no_grad": (KNOWN, "with torch.no_grad(): loss = model(data).sum()", 2, None),
    "numbers": (KNOWN, "kept.append(model(data).sum().item())", 2, None),
    "the last one": (KNOWN, "kept = [model(data).sum()]", 2, None),
    "a few that are kept at first": (KNOWN, "kept += [model(data)] if len(kept) < 5 else []", 12, None),
}


@pytest.mark.parametrize("name", ROUND_CASES)
def test_a_loop_that_is_cut_short_while_memory_rises_is_told(dry_run, name):
    loader, body, rounds, of = ROUND_CASES[name]
    program = ROUNDS.replace("LOADER", loader).replace("BODY", body)
    ran = dry_run(program, steps=8, go_on=True, confined=True)
    assert ran.status == 0, ran.err
    assert ran.out == f"evaluated {rounds}\n"
    where = "program.py:%d" % (1 + program.split("\n").index(f"for number in {loader}:"))
    assert ran.summary["rising"] == (
        [] if of is None else [{"where": where, "number": 1, "rounds": of, "begun": rounds}]
    )
