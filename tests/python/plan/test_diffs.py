"""The changes of source that a plan shows are whole: with its imports and its loop the program runs, and takes less."""

import pytest

from test_remedies import TRANSFORMER, install_made_up

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
    "an output with its loss": """
from types import SimpleNamespace
for step in range(6):
    tokens = torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda")
    out = SimpleNamespace(loss=nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()))
    out.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
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
    "parts of one tensor": """
data = torch.zeros(12, seq_len, dtype=torch.long)
for epoch in range(1):
    for i in range(0, len(data), batch_size):
        tokens = data[i : i + batch_size].cuda()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
""",
    "counted from one, in an epoch": """
data = [torch.zeros(batch_size, seq_len, dtype=torch.long)] * 6
for i in range(1):
    for number, tokens in enumerate(data, 1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens.cuda()).flatten(0, 1), tokens.cuda().flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
""",
    "a scaler": """
scaler = torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()
data = [torch.zeros(batch_size, seq_len, dtype=torch.long)] * 6
for step, tokens in enumerate(data):
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
    assert quarter["many"] == 4
    text = edited(program, quarter["edits"]).replace("@MANY@", "4")
    assert "% 4 == 0 or " in text and "/ min(4, " in text and "batch_size, seq_len = 2, 256" in text, text
    again = run(binary, tmp_path_factory.mktemp("again"), text)
    assert again.status == 0, again.err
    assert again.summary["peak_allocated"] < ran.summary["peak_allocated"]
    assert again.summary["steps"] == 2  # of four batches, and of the two that are left


@pytest.mark.parametrize(
    "loop",
    [
        "\nfor step in range(3):\n    (model(torch.zeros(8, 256, dtype=torch.long, device='cuda')).sum() * 2).backward(); optimizer.step()\n",
        "\nfor tokens in (torch.zeros(8, 256, dtype=torch.long) for _ in range(3)):\n    model(tokens.cuda()).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
        "\ndef work():\n    model(torch.zeros(8, 256, dtype=torch.long, device='cuda')).sum().backward()\n    optimizer.step()\nwork()\n",
    ],
    ids=["two on a line", "of unknown length", "no loop"],
)
def test_a_loop_of_another_form_is_left_alone(dry_run, loop):
    ran = dry_run(TRANSFORMER + MAKE + loop)
    assert ran.status == 0, ran.err
    assert offers(ran, "batch") and not any(offer["edits"] for offer in offers(ran, "batch"))


def test_imports_that_new_lines_need_are_in_the_diff(dry_run, tmp_path):
    install_made_up(tmp_path, "bitsandbytes", "peft")
    program = TRANSFORMER + MAKE + LOOPS["a counter"]
    ran = dry_run(program)
    wanted = {"states": "import bitsandbytes", "lora": "import peft", "checkpoint": "import torch.utils.checkpoint"}
    for name, line in wanted.items():
        shown = [offer for offer in offers(ran, name) if offer["edits"]]
        assert shown, name
        first = edited(program, shown[0]["edits"]).split("\n")
        assert line in first and first.index(line) < first.index("class Block(nn.Module):"), name
    assert all("import torch" not in e["new"] for o in ran.summary["offers"] for e in o["edits"])  # it has that already


CALLS = {
    "in training and in an evaluation": (
        "with torch.no_grad():\n    for i in range(2):\n        kept = model(tokens)\nloss = model(tokens).square().mean()\nloss.backward()\noptimizer.step()\n",
        2,
    ),
    "one of them of another form": (
        "for out in [model(tokens) for _ in range(2)]:\n    pass\nmodel(tokens).sum().backward()\noptimizer.step()\n",
        0,
    ),
    "two in a line": ("(model(tokens) + model(tokens)).sum().backward()\noptimizer.step()\n", 0),
}


@pytest.mark.parametrize("calls, shown", CALLS.values(), ids=CALLS)
def test_autocast_is_shown_around_every_call_or_not_at_all(dry_run, tmp_path_factory, binary, calls, shown):
    from dry import dry_run as run

    program = (
        TRANSFORMER + MAKE + 'tokens = torch.zeros(batch_size, seq_len, dtype=torch.long, device="cuda")\n' + calls
    )
    ran = dry_run(program)
    assert ran.status == 0, ran.err
    (autocast,) = offers(ran, "autocast")
    assert len(autocast["edits"]) == shown
    if shown:
        text = edited(program, autocast["edits"])
        again = run(binary, tmp_path_factory.mktemp("again"), text)
        tried = run(binary, tmp_path_factory.mktemp("tried"), program, changes={"autocast": autocast["value"]})
        assert (again.status, tried.status) == (0, 0), again.err + tried.err
        # the result has a name now, and stays a little longer
        assert (
            tried.summary["peak_allocated"] <= again.summary["peak_allocated"] < tried.summary["peak_allocated"] * 1.05
        )
        assert again.summary["peak_allocated"] < ran.summary["peak_allocated"]


WORK = """
import work
grads, steps = work.grads, work.steps
optimizer, model, scaler, data, n = work.Optimizer(), work.Model(), work.Scaler(), list(range(10)), 10
"""
BODY = """
    optimizer.zero_grad()
    loss = model(1)
    loss.backward()
    optimizer.step()
"""
BEHIND = """
    loss = model(1)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(grads)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""
HEADERS = {
    "range": "for i in range(n):",
    "a number": "for step in range(10):",
    "none": "for _ in range(n):",
    "steps of a range": "for i in range(0, 2 * len(data), 2):",
    "not from 0": "for i in range(5, 15):",
    "data": "for x in data:",
    "pairs": "for (a, b), c in pairs:",
    "enumerate": "for i, x in enumerate(data):",
    "from 1": "for i, x in enumerate(data, 1):",
    "start": "for i, x in enumerate(data, start=1):",
    "from 7": "for i, x in enumerate(data, 7):",
    "i is used": "i = 3\nfor x in data:",
    "all are used": "i = batch_index = batch_number = 3\nfor x in data:",
    "an attribute": "for x in model.data:",
}


def fake_work():
    import types

    grads, steps = [], []

    class Loss:
        def __init__(self, weight=1.0):
            self.weight = weight

        def __truediv__(self, by):
            return Loss(self.weight / by)

        def backward(self):
            grads.append(self.weight)

    class Optimizer:
        def zero_grad(self):
            grads.clear()

        def step(self):
            steps.append(list(grads))

    class Scaler:
        done = 0

        def scale(self, loss):
            return loss

        def step(self, optimizer):
            optimizer.step()

        def unscale_(self, _optimizer):
            assert not self.done, "once a step"
            self.done = 1

        def update(self):
            self.done = 0

    class Model:
        data = list(range(10))

        def __call__(self, _x):
            return Loss()

    return types.SimpleNamespace(grads=grads, steps=steps, Optimizer=Optimizer, Scaler=Scaler, Model=Model)


def accumulated(tmp_path, program: str, many: int = 4) -> list:
    from dataclasses import asdict

    from faultline.plan.torch.remedies.accumulating import accumulation_edits

    file = tmp_path / f"loop_{len(list(tmp_path.iterdir()))}.py"
    file.write_text(program)
    line = next(n for n, text in enumerate(program.split("\n"), 1) if ".step(" in text)
    edits = accumulation_edits(f"{file}:{line}", many, {"data", "pairs", "model.data"})
    return [asdict(edit) for edit in edits]


@pytest.mark.parametrize("body", [BODY, BEHIND], ids=["cleared before", "cleared behind, with a scaler"])
@pytest.mark.parametrize("many", [2, 4, 16])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_every_batch_is_in_a_step_and_each_step_is_a_mean(tmp_path, monkeypatch, header, body, many):
    import sys

    work = fake_work()
    monkeypatch.setitem(sys.modules, "work", work)
    given = "clip_grad_norm_ = list\npairs = [((1, 2), 3)] * 10\n"
    program = WORK + given + header + body
    text = edited(program, accumulated(tmp_path, program, many))
    assert text != program
    exec(compile(text, "loop.py", "exec"), {})
    assert [len(step) for step in work.steps] == [many] * (10 // many) + [10 % many] * (10 % many != 0), text
    assert all(abs(sum(step) - 1) < 1e-9 for step in work.steps), text


NOT_WRITTEN = {
    "no length": "for x in iter(data):" + BODY,
    "two together": "for a, b in zip(data, data):" + BODY,
    "it breaks off": "for x in data:" + BODY + "    if x == 3: break\n",
    "it skips": "for x in data:\n    if x == 3: continue" + BODY,
    "a sum": "for x in data:" + BODY.replace("model(1)", "model(1).sum()"),
    "nothing is cleared": "for x in data:" + BODY.replace("optimizer.zero_grad()", "pass"),
    "cleared by hand": "for x in data:" + BODY.replace("optimizer.zero_grad()", "[p.zero_grad() for p in data]"),
    "two passes": "for x in data:" + BODY.replace("loss.backward()", "loss.backward()\n    loss.backward()"),
    "a norm that is kept": "for x in data:"
    + BODY.replace("optimizer.step", "norm = clip_grad_norm_(1)\n    optimizer.step"),
    "data that changes": "for x in data:" + BODY + "    data = data[1:]\n",
    "a step of its own": "for x in data:" + BODY.replace("optimizer.step()", "if x: optimizer.step()"),
}


@pytest.mark.parametrize("loop", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_what_cannot_be_written_truly_is_not_written(tmp_path, loop):
    assert accumulated(tmp_path, WORK + loop) == []
    assert accumulated(tmp_path, WORK + HEADERS["data"] + BODY)


class Accelerated:
    """As accelerate does: under accumulate() a step and a clearing that do not end a group are skipped."""

    def __init__(self, gradient_accumulation_steps=1):
        self.many, self.rounds, self.ends = gradient_accumulation_steps, 0, True

    def prepare(self, model, optimizer, data):
        from types import SimpleNamespace

        self.count = len(data)
        step, clear = optimizer.step, optimizer.zero_grad
        skipping = SimpleNamespace(step=lambda: self.ends and step(), zero_grad=lambda: self.ends and clear())
        return model, skipping, data

    def accumulate(self, model):
        import contextlib

        assert callable(model)
        self.rounds += 1
        self.ends = self.rounds % self.many == 0 or self.rounds == self.count
        return contextlib.nullcontext()

    def backward(self, loss):
        (loss / self.many).backward()


ACCELERATED = """import work
data = list(range(8))
accelerator = work.Accelerator()
model, net, opt = work.Model(), work.Model(), work.Optimizer()
model = accelerator.prepare(model)
net, opt, data = accelerator.prepare(net, opt, data)
for x in data:
"""
ACCELERATED_BODIES = {
    "cleared first": "    opt.zero_grad()\n    loss = net(x)\n\n    accelerator.backward(loss)\n    opt.step()\n",
    "cleared behind": "    loss = net(x)\n    accelerator.backward(loss)\n    opt.step()\n    opt.zero_grad()\n",
    "more behind": "    loss = net(x)\n    opt.zero_grad()\n    accelerator.backward(loss)\n    opt.step()\n    if x:\n        print(x)\n",
}


def under_accelerate(tmp_path, program: str):
    from dataclasses import asdict

    from faultline.plan.torch.remedies.accumulating import accelerated_edits

    file = tmp_path / f"loop_{len(list(tmp_path.iterdir()))}.py"
    file.write_text(program)
    line = next(n for n, text in enumerate(program.split("\n"), 1) if ".step(" in text)
    edits = accelerated_edits(f"{file}:{line}")
    return None if edits is None else [asdict(edit) for edit in edits]


@pytest.mark.parametrize("body", ACCELERATED_BODIES.values(), ids=ACCELERATED_BODIES)
def test_accelerate_accumulates_every_batch_in_its_own_way(tmp_path, monkeypatch, body):
    import sys

    work = fake_work()
    work.Accelerator = Accelerated
    monkeypatch.setitem(sys.modules, "work", work)
    program = ACCELERATED.replace("model = accelerator.prepare(model)\n", "")
    text = edited(program + body, under_accelerate(tmp_path, program + body))
    assert "with accelerator.accumulate(net):" in text
    exec(compile(text.replace("Accelerator()", "Accelerator(4)"), "loop.py", "exec"), {})
    assert [len(step) for step in work.steps] == [4, 4], text


NOT_ACCELERATED = {
    "two that were prepared": "    loss = net(model(x))\n    accelerator.backward(loss)\n    opt.step()\n    opt.zero_grad()\n",
    "a pass of its own": "    loss = net(x)\n    loss.backward()\n    opt.step()\n    opt.zero_grad()\n",
    "nothing is cleared": "    accelerator.backward(net(x))\n    opt.step()\n",
    "a step of its own": "    accelerator.backward(net(x))\n    if x:\n        opt.step()\n    opt.zero_grad()\n",
    "a text of several lines": '    accelerator.backward(net(x))\n    opt.step()\n    opt.zero_grad()\n    print("""a\nb""")\n',
}


@pytest.mark.parametrize("body", NOT_ACCELERATED.values(), ids=NOT_ACCELERATED)
def test_a_loop_of_another_form_is_not_put_under_accumulate(tmp_path, body):
    assert under_accelerate(tmp_path, ACCELERATED + body) is None
    assert under_accelerate(tmp_path, ACCELERATED + ACCELERATED_BODIES["cleared behind"])
    under = ACCELERATED + "    with accelerator.accumulate(net):\n" + "        opt.step()\n"
    assert under_accelerate(tmp_path, under) == []


def test_a_name_is_found_where_all_usual_ones_are_taken():
    import ast

    from faultline.plan.source.edits import unused_name

    assert unused_name(ast.parse("x = 1"), ("out", "output")) == "out"
    assert unused_name(ast.parse("import a as out\ndef f(output): pass"), ("out", "output")) == "output_2"


def test_several_smaller_batches_are_the_same_batch(dry_run):
    ran = dry_run(TRANSFORMER.replace("= 8, 256", "= 12, 256") + MAKE + LOOPS["a counter"])
    assert [offer["value"] for offer in offers(ran, "batch")] == [f"batch_size={value}" for value in (6, 3, 1)]


HALF = {
    "float input": "net = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024)).cuda()\n",
    "moved later": "net = nn.Sequential(nn.Linear(1024, 8192), nn.ReLU(), nn.Linear(8192, 1024))\nnet.cuda()\n",
}
HALF_LOOP = """
optimizer = torch.optim.Adam(net.parameters())
for step in range(3):
    x, y = torch.randn(64, 1024, device="cuda"), torch.randn(64, 1024, device="cuda")
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("make", HALF.values(), ids=HALF)
def test_the_model_in_bfloat16_runs_as_it_is_shown(dry_run, binary, tmp_path_factory, make):
    from dry import H200
    from dry import dry_run as run

    program = "import torch\nfrom torch import nn\n" + make + HALF_LOOP
    ran = dry_run(program, gpu=H200)
    (half,) = offers(ran, "half")
    text = edited(program, half["edits"])
    assert "net(x.to(torch.bfloat16)).float()" in text
    again = run(binary, tmp_path_factory.mktemp("again"), text, gpu=H200)
    assert again.status == 0, again.err
    with_it = run(binary, tmp_path_factory.mktemp("with"), program, gpu=H200, changes={"half": half["value"]})
    assert again.summary["peak_allocated"] < 0.7 * ran.summary["peak_allocated"]
    assert abs(again.summary["peak_allocated"] - with_it.summary["peak_allocated"]) < 1 << 20


@pytest.mark.parametrize(
    "call",
    ["net(x) + other(x)", "net(x) + net(x)", "(lambda model: model(x))(net)"],
    ids=["two models", "two calls", "by another name"],
)
def test_no_diff_is_shown_that_would_change_only_a_part(dry_run, call):
    from dry import H200

    make = HALF["float input"] + HALF["float input"].replace("net =", "other =")
    ran = dry_run("import torch\nfrom torch import nn\n" + make + HALF_LOOP.replace("net(x)", call), gpu=H200)
    assert ran.status == 0, ran.err
    (half,) = offers(ran, "half")
    assert half["edits"] == [] and ("every model" in half["what"]) == ("other" in call)
