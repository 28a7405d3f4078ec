"""The changes of source that a plan shows are whole: with its imports and its loop the program runs, and takes less."""

import pytest

from test_remedies import TRANSFORMER

pytest.importorskip("torch")

LOOPS = {
    "a counter": """
for step in range(6):
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda")
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
""",
    "none": """
for _ in range(6):
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda")
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "data": """
data = [torch.zeros(batch_size, seq_len, dtype=torch.long)] * 6
for tokens in data:
    tokens = tokens.cuda()
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "a scaler": """
scaler = torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
for step, tokens in enumerate([torch.zeros(batch_size, seq_len, dtype=torch.long)] * 6):
    tokens = tokens.cuda()
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
""",
}
MAKE = "model = Model().cuda()\noptimizer = torch.optim.AdamW(model.parameters())\n"


def edited(program: str, edits: list) -> str:
    lines = program.split("\n")
    places = sorted(edits, key=lambda edit: (edit["line"], bool(edit["old"])))
    shift = 0
    for edit in places:
        at = edit["line"] - 1 + shift
        assert lines[at : at + len(edit["old"])] == edit["old"]
        lines[at : at + len(edit["old"])] = edit["new"]
        shift += len(edit["new"]) - len(edit["old"])
    return "\n".join(lines)


def offers(ran, name: str) -> list:
    return [offer for offer in ran.summary["offers"] if offer["name"] == name]


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_smaller_batch_is_shown_with_the_loop_that_accumulates_it(dry_run, tmp_path_factory, binary, loop):
    from dry import dry_run as run

    program = TRANSFORMER + MAKE + loop
    ran = dry_run(program)
    assert ran.status == 0, ran.err
    quarter = next(offer for offer in offers(ran, "batch") if offer["value"] == "batch_size=2")
    text = edited(program, quarter["edits"])
    assert "% 4 == 0:" in text and "/ 4" in text and "batch_size, seq_len = 2, 256" in text, text
    again = run(binary, tmp_path_factory.mktemp("again"), text)
    assert again.status == 0, again.err
    assert again.summary["peak_allocated"] < ran.summary["peak_allocated"]
    assert again.summary["steps"] == 1  # of six batches


@pytest.mark.parametrize(
    "loop",
    [
        "\nfor step in range(3):\n    (model(torch.zeros(8, 256, dtype=torch.long, device='cuda')).sum() * 2).backward(); optimizer.step()\n",
        "\ndef work():\n    model(torch.zeros(8, 256, dtype=torch.long, device='cuda')).sum().backward()\n    optimizer.step()\nwork()\n",
    ],
    ids=["two on a line", "no loop"],
)
def test_a_loop_of_another_form_is_left_alone(dry_run, loop):
    ran = dry_run(TRANSFORMER + MAKE + loop)
    assert ran.status == 0, ran.err
    assert offers(ran, "batch") and all(
        "% " not in line for o in offers(ran, "batch") for e in o["edits"] for line in e["new"]
    )


def test_imports_that_new_lines_need_are_in_the_diff(dry_run):
    program = TRANSFORMER + MAKE + LOOPS["a counter"]
    ran = dry_run(program)
    wanted = {"states": "import bitsandbytes", "lora": "import peft", "checkpoint": "import torch.utils.checkpoint"}
    for name, line in wanted.items():
        shown = [offer for offer in offers(ran, name) if offer["edits"]]
        assert shown, name
        first = edited(program, shown[0]["edits"]).split("\n")
        assert line in first and first.index(line) < first.index("class Block(nn.Module):"), name
    assert all("import torch" not in e["new"] for o in ran.summary["offers"] for e in o["edits"])  # it has that already
