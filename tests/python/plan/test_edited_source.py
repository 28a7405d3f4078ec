"""What a trial runs where a remedy is an edit: the program's source with it, under the lines of the file, and nothing else than what the printed diff makes of the file."""

import json
import subprocess
import sys
import types

import pytest
from test_remedies import INFER, TRAIN

from faultline.plan.source import changed_source
from faultline.plan.source.edited_lines import Conflict, edited, joined

LINES = "import a\n\nx = f(1, b=8)\n    out = m(x)\ny(\n    1,\n    2,\n)\n".split("\n")
WRAPPED = (4, ["    out = m(x)"], ["    with n:", "        out = m(x)"])
ARGUMENT = (3, ["x = f(1, b=8)"], ["x = f(1, b=8, c=1)"])
NUMBER = (3, ["x = f(1, b=8)"], ["x = f(1, b=4)"])


def test_edits_of_different_parts_of_a_line_are_one_edit():
    together = joined(LINES, [ARGUMENT, NUMBER, (3, ARGUMENT[1], ["x = f(1, b=8, d=2)"])])
    assert together == [(3, ["x = f(1, b=8)"], ["x = f(1, b=4, c=1, d=2)"])]


def test_what_is_changed_inside_of_a_new_block_is_in_it():
    together = joined(LINES, [WRAPPED, (4, ["    out = m(x)"], ["    out = m(x.c())"]), (4, [], ["    before()"])])
    new, origins = edited(LINES, together)
    assert new[3:6] == ["    before()", "    with n:", "        out = m(x.c())"]
    assert origins == [1, 2, 3, 4, 4, 4, 5, 6, 7, 8, 9]


def test_the_same_import_is_put_in_once():
    assert joined(LINES, [(2, [], ["import t"]), (2, [], ["import t"]), (2, [], ["import u"])]) == [
        (2, [], ["import t", "import u"])
    ]


@pytest.mark.parametrize(
    "edits",
    [
        [WRAPPED, (4, WRAPPED[1], ["    with k:", "        out = m(x)"])],
        [NUMBER, (3, NUMBER[1], ["x = f(1, b=2)"])],
        [(3, ["x = g()"], ["x = h()"])],
        [(5, ["y(", "    1,"], ["y(0,", "    3,"]), (6, [], ["    z,"])],
        [(40, [], ["pass"])],
    ],
    ids=["two blocks", "two numbers", "another line", "into a change", "no such line"],
)
def test_edits_that_say_different_things_do_not_go_together(edits):
    with pytest.raises(Conflict):
        joined(LINES, edits)


# --- what is run


def offers_with_edits(ran) -> list:
    assert ran.status == 0, ran.err
    return [offer for offer in ran.summary["offers"] if offer["edits"]]


def parts_of(code: types.CodeType) -> list:
    """All that is executed, and no line numbers."""
    constants = [parts_of(one) if isinstance(one, types.CodeType) else one for one in code.co_consts]
    return [code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, repr(constants)]


def code_as_run(request: dict, path) -> types.CodeType:
    """In an interpreter of its own, which the request arms as a trial's."""
    program = (
        "import json, marshal, sys; from faultline.plan.source import changed_source as c;"
        "request = json.loads(sys.argv[1]); c.arm(request);"
        "sys.stdout.buffer.write(marshal.dumps(c.code_of(open(sys.argv[2], 'rb').read(), sys.argv[2])))"
    )
    import marshal

    from common import ROOT

    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(request), str(path)],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "python")},
    )
    return marshal.loads(done.stdout)


def is_run_as_printed(request: dict, program, diff: str, folder) -> bool:
    """Is the source that this request runs the file with the diff, as `patch` makes it?"""
    folder.mkdir()
    copy = folder / program.name
    copy.write_text(program.read_text())
    done = subprocess.run(["patch", "-p1"], input=diff, text=True, cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stdout + diff
    as_printed = compile(copy.read_text(), str(program), "exec", dont_inherit=True)
    assert parts_of(as_printed) != parts_of(compile(program.read_text(), str(program), "exec", dont_inherit=True))
    return parts_of(code_as_run(request, program)) == parts_of(as_printed)


PROGRAMS = {"training": (TRAIN, "820MiB"), "inference": (INFER.replace("no_grad", "enable_grad"), "740MiB")}


@pytest.mark.parametrize("program, gpu", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_run_is_the_program_with_the_printed_diff(binary, tmp_path, program, gpu):
    script = tmp_path / "train.py"
    script.write_text(program)
    done = subprocess.run(
        [binary, "plan", "--gpu", gpu, "--try", "--format", "json", "-o", tmp_path / "left", "--", sys.executable, "train.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    plan = json.loads(done.stdout)["plan"]
    printed = {change["diff"]: change["label"] for change in plan["changes"] if change["diff"]}
    if plan["vary"] and plan["vary"]["diff"]:
        printed[plan["vary"]["diff"]] = "batch"
    requests = [json.loads(file.read_text()) for file in (tmp_path / "left").glob("tries/*/plan.json")]
    assert len(printed) >= 2, done.stderr
    for number, (diff, label) in enumerate(printed.items()):
        assert any(
            is_run_as_printed(request, script, diff, tmp_path / f"copy-{number}-{at}")
            for at, request in enumerate(requests)
            if request["edits"]
        ), (label, diff)
    for change in plan["changes"]:  # no diff but of all that was run
        assert not (change["diff"] and change["without_edit"]), change
        assert change["kind"] == "setting" or not change["tried"] or change["diff"] or change["without_edit"], change


SHOWS = """
import inspect, linecache, sys, traceback
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)
    def forward(self, x):
        self.line = traceback.extract_stack()[-1].lineno
        return self.linear(x)
model = Model().cuda()
for _ in range(3):
    out = model(torch.ones(8, 64, device="cuda"))
    line = traceback.extract_stack()[-1]
print(model.line, linecache.getline(__file__, model.line).strip(), "|", line.lineno, line.line)
print(inspect.getsource(Model.forward).splitlines()[-1].strip(), "|", open(__file__).read().count("torch." + "no_grad"), __file__)
"""


def test_the_lines_of_an_edited_program_are_those_of_its_file(dry_run, tmp_path, tmp_path_factory, binary):
    from dry import dry_run as run

    program = "import torch\n" + SHOWS
    ran = dry_run(program)
    (offer,) = [offer for offer in offers_with_edits(ran) if offer["name"] == "no_grad"]
    script = tmp_path / "program.py"
    again = run(
        binary, tmp_path_factory.mktemp("edited"), script, edits={"no_grad": offer["edits"]}, changes={"no_grad": "true"}, cold=True
    )  # fmt: skip
    assert again.status == 0, again.err
    assert again.out == ran.out and "torch.no_grad" not in script.read_text()
    told = again.summary["edited"]
    assert told["remedies"] == ["no_grad"] and told["edits"][0]["new"][0].strip() == "with torch.no_grad():"
    assert again.summary["changes"] == {} and again.summary["offers"] == []
    assert again.summary["peak_allocated"] <= ran.summary["peak_allocated"]


def test_what_cannot_be_edited_is_changed_by_hand(dry_run, tmp_path):
    edits = {
        "no_grad": [{"file": str(tmp_path / "program.py"), "line": 3, "old": ["is not there"], "new": ["nor this"]}]
    }
    ran = dry_run(INFER.replace("no_grad", "enable_grad"), edits=edits, changes={"no_grad": "true"})
    assert ran.summary["edited"] is None
    assert ran.summary["changes"] == {"no_grad": "the model was called under torch.no_grad()"}


def test_modules_of_the_program_are_edited_too(dry_run, tmp_path, tmp_path_factory, binary):
    from dry import dry_run as run

    (tmp_path / "net.py").write_text(TRAIN.partition("def main")[0])
    ran = dry_run("from net import *\nimport torch\nimport torch.utils.checkpoint\n" + "def main" + TRAIN.partition("def main")[2], cold=True)  # fmt: skip
    (offer,) = [offer for offer in offers_with_edits(ran) if offer["name"] == "checkpoint"]
    assert {edit["file"] for edit in offer["edits"]} == {str(tmp_path / "net.py")}
    again = run(
        binary,
        tmp_path_factory.mktemp("edited"),
        tmp_path / "program.py",
        edits={"checkpoint": offer["edits"]},
        changes={"checkpoint": "1/1"},
        cold=True,
    )
    assert again.status == 0, again.err
    assert again.summary["edited"]["remedies"] == ["checkpoint"]
    assert again.summary["peak_allocated"] < ran.summary["peak_allocated"]
    assert changed_source.told() is None  # nothing of it is left in this process


def test_a_program_that_fails_with_an_edit_gets_no_tick_for_it(binary, tmp_path):
    refuses = "    def forward(self, tokens):\n        assert not torch.is_autocast_enabled('cuda'), 'float32 only'\n"
    (tmp_path / "train.py").write_text(TRAIN.replace("    def forward(self, tokens):\n", refuses))
    done = subprocess.run(
        [binary, "plan", "--gpu", "820MiB", "--try", "--format", "json", "-o", tmp_path / "left", "--", sys.executable, "train.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )  # fmt: skip
    report = json.loads(done.stdout)
    plan = report["plan"]
    (autocast,) = [change for change in plan["changes"] if change["remedies"] == ["autocast"]]
    assert not autocast["tried"] and autocast["begun"] and "AssertionError: float32 only" in autocast["why_not"]
    assert plan["verdict"] == "does-not-fit" and (plan.get("exception") or {}).get("type") != "AssertionError"


def test_every_remedy_has_a_row_on_the_page_and_a_class():
    import re

    from common import ROOT

    from faultline.plan.remedies.table import TABLE, TORCH
    from faultline.plan.torch.remedies import REMEDIES

    cells = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/plan-remedies.md").read_text(), re.M)
    assert [row.title for row in TABLE.values() if not any(row.title in cell for cell in cells)] == []
    assert {kind.name for kind in REMEDIES} == {row.name for row in TABLE.values() if TORCH in row.frameworks}
    for row in TABLE.values():
        assert {*row.excludes, *filter(None, [row.wants, row.beside])} <= set(TABLE), row.name


def test_plans_decide_nothing_by_a_remedys_name():
    from common import ROOT

    from faultline.plan.remedies.table import TABLE

    words = {"batch", "map", "arguments", "states"}  # that mean something else, too
    for file in (ROOT / "src/plan").glob("*"):
        if "_test" not in file.name and file.suffix in (".cpp", ".h"):
            code = "\n".join(line.partition("//")[0] for line in file.read_text().splitlines())
            assert [name for name in set(TABLE) - words if f'"{name}"' in code] == [], file.name
