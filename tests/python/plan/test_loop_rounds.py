"""How many steps the program's own loops make, where their source says it; and nothing where it does not."""

import weakref
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")

HEAD = """
import types
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
options = types.SimpleNamespace(epochs=3, n=40)
model = nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(200, 8)), batch_size=10)
more = DataLoader(TensorDataset(torch.zeros(700, 8)), batch_size=10)
def step(optimizer=optimizer):
    optimizer.zero_grad()
    model(torch.randn(2, 8, device="cuda")).sum().backward()
    optimizer.step()
"""
# program → (rounds, steps in all)
KNOWN = {
    "a range": ("for i in range(500):\n    step()\n", 500, 500),
    "a range with an end": ("for i in range(100, 500, 4):\n    step()\n", 100, 100),
    "a number of the options": ("for i in range(options.n * 5):\n    step()\n", 200, 200),
    "two optimizers": ("for i in range(300):\n    step()\n    step(other)\n", 300, 600),
    "accumulation": ("for i in range(400):\n    if i % 4 == 3:\n        step()\n", 400, 100),
    "a warm-up": ("for i in range(300):\n    if i >= 32:\n        step()\n", 300, 268),
    "epochs of a loader": ("for e in range(options.epochs):\n    for (x,) in loader:\n        step()\n", 60, 60),
    "a loader that is counted": ("for e in range(5):\n    for i, x in enumerate(loader):\n        step()\n", 100, 100),
    "a loader's length": ("for i in range(len(loader)):\n    step()\n", 20, 20),
    "in functions": ("def fit(n):\n    for i in range(n):\n        step()\nfit(250)\n", 250, 250),
    "while": ("i = 0\nwhile i < 500:\n    step()\n    i += 1\n", 500, 500),
    "while, to the last, by twos": ("i = 2\nwhile i <= options.n * 5:\n    step()\n    i += 2\n", 100, 100),
    "while, counted in the data": (
        "i = 0\nwhile i < 500:\n    for (x,) in loader:\n        step()\n        i += 1\n        if i == 500: break\n",
        500,
        500,
    ),
    "while, of a trainer": (
        "class Fit:\n    done, most = 0, 70\n    def all(self):\n        while self.done < self.most:\n            for (x,) in loader:\n                step()\n            self.done += 1\nFit().all()\n",
        1400,
        1400,
    ),
    "zip": ("for (x,), (y,) in zip(loader, more):\n    step()\n", 20, 20),
    "zip with one that goes round": (
        "from itertools import cycle\nfor i, ((x,), (y,)) in enumerate(zip(cycle(loader), more)):\n    step()\n",
        70,
        70,
    ),
    "zip with the longer first": ("for (x,), (y,) in zip(more, loader):\n    step()\n", 20, 20),
    "zip of a range": ("for i, (x,) in zip(range(30), more):\n    step()\n", 30, 30),
    "a break": ("for i in range(500):\n    step()\n    if i > 400: break\n", 500, 500),
}
UNKNOWN = {
    "while, counted under a condition and anew": "i = 0\nwhile i < 500:\n    step()\n    i += 1\n    if i == 50: i = 0\n",
    "while, by a step that is not known": "i, n = 0, 2\nwhile i < 500:\n    step()\n    i += n\n",
    "while, to an end that moves": "i, n = 0, 500\nwhile i < n:\n    step()\n    i += 1\n    n -= 1\n",
    "while, counted by another function": "def on():\n    global i\n    i += 1\ni = 0\nwhile i < 500:\n    step()\n    on()\n",
    "while, over data of unknown length": "i = 0\nwhile i < 9:\n    for x in iter([1] * 50):\n        step()\n    i += 1\n",
    "zip of loops without end": "from itertools import cycle, count\nfor i, x in zip(count(), cycle(loader)):\n    step()\n    if i > 40: break\n",
    "zip with a generator": "for i, x in zip(loader, iter([1] * 15)):\n    step()\n",
    "while around": "while True:\n    for i in range(5):\n        step()\n",
    "a generator": "def data():\n    yield from [1] * 500\nfor x in data():\n    step()\n",
    "a comprehension": "[step() for i in range(500)]\n",
    "a number that is changed": "n = 500\nfor i in range(n):\n    n = 3\n    step()\n",
    "a counter that is changed": "for i in range(500):\n    i = i % 2\n    step()\n",
    "no loop": "step()\nstep()\nstep()\n",
}


def loop(dry_run, program):
    ran = dry_run(HEAD + program, steps=9, go_on=True)
    assert ran.status == 0, ran.err
    return ran.summary["loop"]


@pytest.mark.parametrize("name", KNOWN)
def test_the_steps_of_a_loop_are_known(dry_run, name):
    program, rounds, steps = KNOWN[name]
    found = loop(dry_run, program)
    assert (found["rounds"], found["steps"]) == (rounds, steps)
    assert found["where"].endswith(".py:%d" % (1 + (HEAD + program).split("\n").index(_innermost(program))))


def _innermost(program):
    """The loop that is told: around a loop that counts for it, a while."""
    loops = [line for line in program.split("\n") if line.strip().startswith(("for ", "while "))]
    return loops[0 if "i += 1\n        if" in program else -1]


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_the_source_does_not_say_is_not_known(dry_run, name):
    assert loop(dry_run, UNKNOWN[name]) is None


KEPT = """
class Trainer:
    def __init__(self):
        self.losses = []
    def fit(self):
        for i in range(500):
            out = model(torch.randn(2, 8, device="cuda") + torch.zeros(1 << 20, 8, device="cuda")[:2])
            out.sum().backward()
            optimizer.step()
            self.losses.append(torch.zeros(1 << 18, device="cuda") + i)
Trainer().fit()
"""


def test_what_the_stop_lets_go_of_is_held(dry_run):
    [leak] = [one for one in dry_run(HEAD + KEPT, steps=30).report()["findings"] if one["rule"] == "memory/leak"]
    assert leak["severity"] == "error" and "are still held" in leak["message"]
    assert "losses of Trainer, a list" in leak["memory"]


@pytest.mark.parametrize("live, until", [((5, 6, 7), True), ((5, 5, 5), False), ((5, 6, 7, 8, 9, 10, 11), False)])
def test_loops_behind_the_training_get_their_time_of_computing(monkeypatch, live, until):
    """A busy machine does not shorten what is seen of them, and one in which memory may rise is seen until that is known."""
    from faultline.plan.torch.program import beyond_loops

    clock = SimpleNamespace(now=100.0, computed=7.0)
    monkeypatch.setattr(
        beyond_loops, "time", SimpleNamespace(monotonic=lambda: clock.now, process_time=lambda: clock.computed)
    )
    session = SimpleNamespace(
        options={"steps": 8}, progress=SimpleNamespace(steps=8), mode=SimpleNamespace(deadline=None)
    )
    beyond = beyond_loops.BeyondLoops(session)
    training, validation = beyond_loops._Loop(None, iter(()), beyond), beyond_loops._Loop(None, iter(()), beyond)
    beyond.last = weakref.ref(training)
    assert beyond.begin() and session.mode.deadline == 106
    beyond.last = weakref.ref(validation)
    validation.live = [0, *live]
    clock.now, clock.computed = 106.0, 8.0  # of six seconds it had one
    assert beyond.more_time() >= 111
    clock.now, clock.computed = 120.0, 13.5  # it had all of them
    assert (beyond.more_time() is not None) is until
    clock.now = 300.0  # nobody waits for ever
    assert beyond.more_time() is None
