"""Who holds what piles up is looked at in the program itself: the container with its name and limit, or a graph."""

import json
import re

import pytest

pytest.importorskip("torch")

HEAD = """
import functools
from collections import deque
import torch
from torch import nn
model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step(x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
"""
LOOP = "for i in range(40):\n    x = torch.randn(512, 256, device='cuda')\n    step(x)\n"
# program → words of the holder, whether a graph holds it, whether it has a limit
CASES = {
    "a list of the module": ("kept = []\n" + LOOP + "    kept.append(x)\n", "kept, a list", False, False),
    "a dict": ("seen = {}\n" + LOOP + "    seen[i] = x\n", "seen, a dict", False, False),
    "tuples in a list": ("pairs = []\n" + LOOP + "    pairs.append((i, x))\n", "pairs, a list", False, False),
    "a list of a function": (
        "def main():\n    inner = []\n    " + (LOOP + "    inner.append(x)\n").replace("\n", "\n    ") + "\nmain()\n",
        "inner, a list in main()",
        False,
        False,
    ),
    "an attribute": (
        "class Server:\n    def __init__(self): self.history = []\nserver = Server()\n"
        + LOOP
        + "    server.history.append(x)\n",
        "history of Server, a list",
        False,
        False,
    ),
    "a deque without a limit": ("queue = deque()\n" + LOOP + "    queue.append(x)\n", "queue, a deque", False, False),
    "a deque with a limit": (
        "queue = deque(maxlen=1000)\n" + LOOP + "    queue.append((x, i))\n",
        "queue, a deque of at most 1,000",
        False,
        True,
    ),
    "a ring": (
        "ring = [None] * 1000\n" + LOOP + "    ring[i % 1000] = x\n",
        "ring, a list",
        False,
        True,
    ),
    "a cache with a limit": (
        "@functools.lru_cache(maxsize=100)\ndef table(i):\n    return torch.randn(512, 256, device='cuda')\n"
        + LOOP
        + "    table(i)\n",
        "the lru_cache of table",
        False,
        True,
    ),
    "a cache without a limit": (
        "@functools.lru_cache(maxsize=None)\ndef table(i):\n    return torch.randn(512, 256, device='cuda')\n"
        + LOOP
        + "    table(i)\n",
        "the lru_cache of table",
        False,
        False,
    ),
    "a mean with its graph": (
        "means = []\n" + LOOP + "    means.append(model[0](x).mean())\n",
        "means, a list",
        True,
        False,
    ),
    "a sum with its graph": (
        "total = 0\n" + LOOP + "    total = total + model(x).mean()\n",
        "total, a tensor",
        True,
        False,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_holder_is_named(dry_run, name):
    program, holder, by_graph, limited = CASES[name]
    ran = dry_run(HEAD + program)
    assert ran.status == 0, ran.err
    leaks = [finding for finding in ran.report()["findings"] if finding["rule"] == "memory/leak"]
    assert leaks, name
    told = leaks[0]
    assert holder in told["memory"], told["memory"]
    assert ("autograd graph" in told["memory"]) == by_graph
    assert ("limit_bytes" in told["evidence"]) == limited
    assert (told["severity"] == "note") == limited
    if not by_graph:
        assert "no_grad" not in json.dumps(told.get("try", told))


UNDER_CONSTRUCTION = """
def validate(loss):
    return [model(torch.randn(512, 256, device="cuda")).mean() for _ in range(40)]

def fit():
    total = 0
    for i in range(3):
        loss = step(torch.randn(512, 256, device="cuda"))
        KEPT
    validate(loss)

fit()
"""


@pytest.mark.parametrize(
    "kept", ["loss = loss * 2", "loss = loss + model(torch.randn(512, 256, device='cuda')).mean()"]
)
def test_a_variable_whose_graph_is_freed_is_not_blamed(dry_run, kept):
    """What a comprehension builds has no name yet; the loss of the last step is no reason that it grows, nor what else it keeps."""
    ran = dry_run(HEAD + UNDER_CONSTRUCTION.replace("KEPT", kept))
    held = [json.loads(one) for one in re.findall(rb'\{"lines".*?"graph": \w+\}', ran.traces[0].read_bytes())]
    grown = [one for one in held if one["graph"]]
    assert grown and not any("loss" in one["holder"] for one in grown), held


def test_looking_changes_nothing(dry_run):
    """What is looked at lives no longer for it: the variables of a function least of all."""
    program = HEAD + (
        "def main():\n    used = set()\n    for i in range(40):\n        x = torch.randn(512, 256, device='cuda')\n"
        "        step(x)\n        kept = [torch.randn(512, 256, device='cuda') for _ in range(8)]\n        model(x)\n"
        "        del kept, x\n        used.add(torch.cuda.memory_allocated())\n"
        "    assert len(used) == 1, used\nmain()\n"
    )
    ran = dry_run(program)
    assert ran.status == 0, ran.err


# What looks at every object must not ask one: names that warn or import when they are looked at, and filters that make errors of warnings.
ASKED = {
    "a warning": "class Old:\n    def __getattribute__(self, name):\n        import warnings; warnings.warn(f'{name} is old', FutureWarning); return object.__getattribute__(self, name)",
    "an import": "class Old:\n    @property\n    def __class__(self): print('asked'); return Old",
    "an error": "class Old:\n    def __getattribute__(self, name): print('asked'); raise RuntimeError(name)",
    "nothing": "class Old: pass",
}


@pytest.mark.parametrize("filters", ["", "import warnings; warnings.simplefilter('error')"], ids=["plain", "errors"])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED.keys())
def test_objects_are_looked_at_without_being_asked(dry_run, asked, filters):
    ran = dry_run(f"""import torch
import torch.distributed
{asked}
old, olds = Old(), [Old(), {{"old": Old()}}]
{filters}
net = torch.nn.Linear(512, 512).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for i in range(40):
    x = torch.randn(512, 512, device="cuda")
    loss = net(x).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    total = total + net(x).mean()
""")
    assert ran.status == 0 and "Warning" not in ran.err and "asked" not in ran.out, ran.out + ran.err
    assert b"total, a tensor" in ran.traces[0].read_bytes()


EPOCHS = """
for rounds in 300, SECOND:
    kept = []
    for i in range(rounds):
        x = torch.randn(512, 256, device="cuda")
        step(x)
        kept.append(x)
"""


@pytest.mark.parametrize("second, least", [(12, 100), (200, 150)])
def test_what_grew_is_told_though_it_has_begun_anew(dry_run, second, least):
    """Twelve of another epoch, which a dry run ended early, are not what the growth before is about."""
    ran = dry_run(HEAD + EPOCHS.replace("SECOND", str(second)))
    held = [json.loads(one) for one in re.findall(rb'\{"lines".*?"graph": \w+\}', ran.traces[0].read_bytes())]
    assert any(one["holder"] == "kept, a list" and one["count"] >= least for one in held), held
