"""A long loop whose rounds are all the same is not run for seconds; one that may come to something else is."""

import pytest

pytest.importorskip("torch")

HEAD = """
import argparse, random, types
import torch
from torch import nn
options = types.SimpleNamespace(steps=400_000, eval_every=1000)
model = nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
def batch():
    return torch.randn(8, 64, device="cuda")
def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
def evaluate(i):
    if i % 1000 == 999:
        model(torch.randn(100_000, 64, device="cuda"))
total = 0.0
losses = []
"""
# Each look at the time that this process computed finds five milliseconds more, so that a busy machine does not decide how many steps there are.
EACH_STEP_TAKES_AS_LONG = """
import itertools, time
looks = itertools.count()
time.process_time = lambda: next(looks) / 200
"""
ALIKE = {
    "a range": "for i in range(1_000_000):\n    step(batch())\n",
    "a number of the options": "for i in range(options.steps):\n    loss = step(batch())\n    if i % 100 == 0:\n        print(i, loss.item())\n",
    "a product": "epochs, each = 1000, 1000\nfor i in range(0, epochs * each):\n    step(batch())\n",
    "sums for printing": "for i in range(1_000_000):\n    loss = step(batch())\n    total += loss.item()\n    losses.append(loss.item())\n    if i % 50 == 0:\n        print(total / 50)\n        total = 0.0\n",
    "in a function": "def main():\n    for i in range(1_000_000):\n        x = batch()\n        with torch.enable_grad():\n            step(x)\nmain()\n",
    "a model of its own": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__(); self.l = nn.Linear(64, 64)\n    def forward(self, x):\n        return self.l(x).relu()\nmodel = Net().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor i in range(1_000_000):\n    step(batch())\n",
    "micro-batches": "for i in range(1_000_000):\n    for part in range(2):\n        model(batch()).sum().backward()\n    optimizer.step()\n    optimizer.zero_grad()\n",
}
OTHERS = {
    "evaluation now and then": "for i in range(1_000_000):\n    step(batch())\n    if i % 1000 == 999:\n        model(torch.randn(100_000, 64, device='cuda'))\n",
    "evaluation in a function": "for i in range(1_000_000):\n    step(batch())\n    evaluate(i)\n",
    "evaluation by a counter": "n = 0\nfor i in range(1_000_000):\n    step(batch())\n    n += 1\n    evaluate(n)\n",
    "sizes by the round": "for i in range(1_000_000):\n    step(torch.randn(8 * (1 + i // 1000), 64, device='cuda'))\n",
    "data": "data = iter([torch.randn(8, 64)] * 1_000_000)\nfor i in range(1_000_000):\n    step(next(data).cuda())\n",
    "a list of data": "for x in [torch.randn(8, 64)] * 1_000_000:\n    step(x.cuda())\n",
    "a leak": "for i in range(1_000_000):\n    losses.append(step(batch()))\n",
    "a loop that ends": "for i in range(1_000_000):\n    step(batch())\n    if i == 2000:\n        break\n",
    "a short loop": "for epoch in range(1000):\n    for i in range(20):\n        step(batch())\n    model(torch.randn(1000, 64, device='cuda'))\n",
    "a hook": "calls = [0]\ndef hook(m, i, o):\n    calls[0] += 1\n    losses.extend([o] * (calls[0] % 50 == 0))\nmodel.register_forward_hook(hook)\nfor i in range(1_000_000):\n    step(batch())\n",
    "a hook of a gradient": "model.weight.register_hook(lambda g: losses.append(g))\nfor i in range(1_000_000):\n    step(batch())\n",
    "a hook of the optimizer": "optimizer.register_step_post_hook(lambda *a: evaluate(len(losses)))\nfor i in range(1_000_000):\n    step(batch())\n",
    "a property": "class Data:\n    n = 0\n    @property\n    def x(self):\n        self.n += 1\n        return torch.randn(8 if self.n < 2000 else 8000, 64, device='cuda')\ndata = Data()\nfor i in range(1_000_000):\n    step(data.x)\n",
    "a method that counts": "class Data:\n    n = 0\n    def give(self):\n        self.n = self.n + 1\n        return torch.randn(8 if self.n < 2000 else 8000, 64, device='cuda')\ndata = Data()\nfor i in range(1_000_000):\n    step(data.give())\n",
    "an object that is called": "class Data:\n    n = 0\n    def __call__(self):\n        self.n += 1\n        return torch.randn(8 if self.n < 2000 else 8000, 64, device='cuda')\ndata = Data()\nfor i in range(1_000_000):\n    step(data())\n",
    "a model that counts": "class Net(nn.Module):\n    def __init__(self):\n        super().__init__(); self.l = nn.Linear(64, 64); self.t = 0\n    def forward(self, x):\n        self.t = self.t + 1\n        return self.l(x.repeat(max(1, min(self.t - 3000, 50)), 1))\nmodel = Net().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor i in range(1_000_000):\n    step(batch())\n",
    "a global number": "n = 0\ndef give():\n    global n\n    n = n + 1\n    return torch.randn(8 if n < 2000 else 8000, 64, device='cuda')\nfor i in range(1_000_000):\n    step(give())\n",
    "a number that is counted on": "n = 0\nfor i in range(1_000_000):\n    n = n + 1\n    step(torch.randn(max(8, n - 2000), 64, device='cuda'))\n",
    "a list that is used up": "sizes = [8] * 2000 + [8000] * 998_000\nfor i in range(1_000_000):\n    step(torch.randn(sizes.pop(0), 64, device='cuda'))\n",
    "no end that is known": "i = 0\nwhile i < 1_000_000:\n    step(batch())\n    i += 1\n",
}


@pytest.mark.parametrize("loop", ALIKE.values(), ids=ALIKE)
def test_a_loop_whose_rounds_are_alike_is_stopped_at_once(dry_run, loop):
    ran = dry_run(HEAD + loop, steps=8, at_least_seconds=6)
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] <= 8 and "were alike" in ran.summary["stopped"], ran.summary
    assert "program.py:" in ran.summary["stopped"] and "rounds" in ran.summary["stopped"]


@pytest.mark.parametrize("loop", OTHERS.values(), ids=OTHERS)
def test_a_loop_that_may_come_to_something_else_goes_on(dry_run, loop):
    ran = dry_run(EACH_STEP_TAKES_AS_LONG + HEAD + loop, steps=8, at_least_seconds=0.2)
    assert ran.status == 0, ran.err
    assert ran.summary["steps"] > 12 and "alike" not in (ran.summary["stopped"] or ""), ran.summary


def test_a_loop_that_is_quick_runs_to_its_end(dry_run):
    ran = dry_run(HEAD + "for i in range(40):\n    step(batch())\nprint('end')\n", steps=8, at_least_seconds=6)
    assert ran.out == "end\n" and ran.summary["stopped"] is None and ran.summary["steps"] == 40
    assert ran.summary["alike_from"] <= 4


def test_the_last_step_that_was_unlike_is_told(dry_run):
    ran = dry_run(HEAD + "for i in range(20):\n    step(batch())\n    if i == 10:\n        kept = batch()\n")
    assert ran.summary["alike_from"] in (12, 13), ran.summary["alike_from"]
