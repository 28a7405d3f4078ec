"""Sizes and branches that come from numbers a dry run does not compute: the most they can be, or a verdict that says what it does not know."""

import pytest

START = "import torch\nd = 'cuda'\nx = torch.randn(2000, 2000, device=d)\nids = torch.randint(0, 5000, (64, 4096), device=d)\n"

# The number that is given is the most that it can be.
MOST = {
    "randint": ("int(ids.max()) + 1", 5000),
    "randint_with_a_low_bound": ("torch.randint(10, 700, (400, 400), device=d).max().item()", 699),
    "random_": ("torch.empty(400, 400, dtype=torch.long, device=d).random_(0, 33).max().item()", 32),
    "largest_of_a_row": ("ids.max(dim=1).values.max().item()", 4999),
    "amax": ("ids.amax().item()", 4999),
    "mask": ("int((ids != 0).sum())", 64 * 4096),
    "mask_of_floats": ("int((x > 0).sum())", 2000 * 2000),
    "mask_by_rows": ("int((ids != 0).sum(1).max())", 4096),
    "mask_as_long": ("(ids > 3).long().sum(1).max().item()", 4096),
    "equal_to_a_token": ("(ids == 7).sum().item()", 64 * 4096),
    "argmax": ("int(x.argmax(1).max())", 1999),
    "of_topk": ("int(x.topk(3, dim=1).indices.max())", 1999),
    "plus": ("int((ids + 2).max())", 5001),
    "times": ("int((ids * 2).max())", 9998),
    "halved": ("int((ids // 2).max())", 2499),
    "remainder": ("int((ids % 100).max())", 99),
    "part_of_it": ("int(ids[:, :100].max())", 4999),
    "from_the_host": ("int(torch.arange(100000).reshape(100, 1000).to(d).max())", 99999),
    "to_a_list": ("max((ids != 0).sum(1).tolist())", 4096),
}


def test_a_maximum_or_a_sum_is_the_most_it_can_be(dry_run):
    ran = dry_run(START + "".join(f"print({name!r}, {code})\n" for name, (code, _) in MOST.items()))
    assert ran.status == 0, ran.err
    assert ran.out.splitlines() == [f"{name} {most}" for name, (_, most) in MOST.items()]


def verdicts(ran):
    return [note["verdict"] for note in ran.notes() if note.get("verdict")]


SIZES = {
    "int_of_a_float": "n = int(x.abs().max() * 1000)\ntorch.zeros(n, 7, device=d)",
    "item_then_int": "m = x.max().item()\nn = int(m * 3)\ntorch.zeros(n, 7, device=d)",
    "picked_token": "n = x.argmax(1)[3].item()\ntorch.zeros(n + 1, 7, device=d)",
    "slice": "n = x.argmax(1)[3].item()\ny = x[: n + 1] * 2",
    "through_a_function": "def length():\n    return int(x.sum())\ntorch.zeros(length() + 3, 7, device=d)",
    "chosen_by_a_fraction": "n = 64 if x.std().item() > 3 else 8\ntorch.zeros(n, 7, device=d)",
    "set_in_a_branch": "n = 8\nif x.std().item() > 3:\n    n = 64\ntorch.zeros(n, 7, device=d)",
    "own_method_called_update": "class Pool:\n    def update(self, n):\n        self.kept = torch.zeros(n, 7, device=d)\nPool().update(x.argmax(1)[3].item() + 1)",
    "own_function_called_add": "def add(rows=0):\n    return torch.zeros(rows + 1, 7, device=d)\nadd(rows=int(x.sum()))",
    "kept_in_a_list": "rows = []\nrows.append(int(x.norm()))\ntorch.zeros(max(rows), 7, device=d)",
    "kept_in_a_queue": "import collections\nclass Rows:\n    def __init__(self):\n        self.seen = collections.deque()\n    def take(self):\n        self.seen.append(int(x.norm()))\n        for n in self.seen:\n            torch.zeros(n, 7, device=d)\nRows().take()",
    "a_float_between": "v = float(int(x.norm()))\ntorch.zeros(int(v) + 1, 7, device=d)",
    "rounds": "keep = []\nfor i in range(int(x.norm())):\n    keep.append(torch.zeros(3, i + 1, device=d))",
}
BRANCHES = {
    "bool_of_a_tensor": "if x.max() > 10:\n    y = torch.zeros(300, device=d)",
    "else": "if x.max() > 10:\n    print('large')\nelse:\n    y = torch.zeros(300, device=d)",
    "item_of_a_truth_value": "big = (x > 3).any().item()\nif big:\n    y = torch.zeros(300, device=d)",
    "fraction": "v = x.norm()\nif v.item() > 5:\n    y = torch.zeros(300, device=d)",
    "fraction_of_a_variable": "v = x.mean().item()\nif v <= 0.5 and v > -3:\n    y = x.repeat(2, 1)",
    "fraction_by_a_function": "def grow():\n    return torch.ones(4000, 400, device=d)\nif float(x.std()) > 2:\n    y = grow()",
    "fraction_by_a_model": "m = torch.nn.Linear(2000, 900).to(d)\nif x.mean().item() > 0:\n    y = m(x)",
    "fraction_in_an_expression": "y = torch.zeros(900, device=d) if x.std().item() > 3 else None",
    "clone": "if x.max() > 10:\n    y = x.clone()",
    "own_function_called_log": "def log(rows):\n    return torch.zeros(rows, device=d)\nif x.max() > 10:\n    y = log(300)",
    "whole_number": "n = int(x.max() * 3)\nif n > 50:\n    y = torch.zeros(300, device=d)",
}
# Every training loop does these.
HARMLESS = {
    "loss": "for i in range(3):\n    loss = (x ** 2).mean()\n    print(i, loss.item())\n    torch.zeros(i + 1, device=d)",
    "running_loss": "total = 0.0\nfor i in range(3):\n    total += (x ** 2).mean().item()\n    torch.zeros(i + 1, device=d)\nprint(f'{total / 3:.3f}')",
    "accuracy": "right = 0\nfor i in range(3):\n    y = torch.zeros(2000, dtype=torch.long, device=d)\n    right += (x.argmax(1) == y).sum().item()\n    torch.zeros(i + 1, device=d)\nprint(right / 6000)",
    "accuracy_of_a_function": "def test():\n    right = 0\n    right += (x.argmax(1) == x.argmin(1)).sum().item()\n    return right / 2000\nacc = test()\nprint(acc)\ntorch.zeros(9, device=d)",
    "best": "best = 1e9\nv = x.norm().item()\nif v < best:\n    best = v\n    torch.save({'x': 1}, 'b.pt')\ntorch.zeros(9, device=d)",
    "nan_check": "loss = x.mean()\nif torch.isnan(loss):\n    raise ValueError('nan')\ntorch.zeros(9, device=d)",
    "end_token": "out = []\nfor i in range(4):\n    t = x.argmax(1)[0].item()\n    if t == 7:\n        break\n    out.append(t)\n    z = torch.tensor([t], device=d)\ntorch.zeros(9, device=d)",
    "all_done": "done = (x.argmax(1) == 5)\nfor i in range(3):\n    if done.all():\n        break\n    torch.zeros(i + 1, device=d)",
    "known_number": "n = int(torch.tensor([3, 9], device=d).max())\ntorch.zeros(n, device=d)",
    "bounded": "n = int(ids.max()) + 1\ntorch.zeros(n, 3, device=d)",
    "scheduler": "o = torch.optim.SGD([x], 0.1)\ns = torch.optim.lr_scheduler.ReduceLROnPlateau(o)\ns.step(x.mean().item())\ntorch.zeros(9, device=d)",
    "best_by_a_function": "best = 1e9\ndef keep(step):\n    torch.save({'s': step, 'x': x.to('cpu')}, 'b.pt')\nv = x.norm().item()\nif v < best:\n    best = v\n    keep(3)\ntorch.zeros(9, device=d)",
    "early_stopping": "best, bad = 1e9, 0\nfor i in range(3):\n    v = (x ** 2).mean().item()\n    if v < best - 1e-3:\n        best, bad = v, 0\n        bad = 0\n    else:\n        bad += 1\n    if bad > 5:\n        break\n    torch.zeros(i + 1, device=d)",
    "is_nan": "import math\nv = x.mean().item()\nif math.isnan(v) or v > 1e4:\n    print('bad')\n    raise SystemExit(3)\ntorch.zeros(9, device=d)",
    "rate_by_loss": "lr = 0.1 if x.mean().item() > 1 else 0.01\no = torch.optim.SGD([x], lr)\ntorch.zeros(9, device=d)",
    "skipped_step": "o = torch.optim.SGD([x], 0.1)\nif x.norm().item() > 10:\n    o.zero_grad()\ntorch.zeros(9, device=d)",
    "scaler": "p = torch.nn.Linear(2000, 3).to(d)\no = torch.optim.SGD(p.parameters(), 0.1)\ns = torch.amp.GradScaler('cuda')\ns.scale(p(x).sum()).backward()\ns.step(o)\ns.update()\nprint(s.get_scale())\ntorch.zeros(9, device=d)",
    "progress_bar": "from tqdm import tqdm\nbar = tqdm(total=9, disable=True)\nbar.update(x.argmax(1)[3].item())\ntorch.zeros(9, device=d)",
    "logged_and_averaged": "import logging\nlog, seen = logging.getLogger('a'), []\nfor i in range(3):\n    n = x.argmax(1)[3].item()\n    seen.append(n)\n    log.info('%d', n)\n    torch.zeros(i + 1, device=d)\nprint(sum(seen) / len(seen))",
    "own_update_that_only_counts": "class Meter:\n    sum = 0\n    def update(self, n):\n        self.sum += n\nm = Meter()\nm.update(x.argmax(1)[3].item())\nprint(m.sum / 9)\ntorch.zeros(9, device=d)",
    "own_log_in_a_branch": "def log(words):\n    print(words)\nif x.max() > 10:\n    log('large')\ntorch.zeros(9, device=d)",
    "clipping": "p = torch.nn.Linear(2000, 3).to(d)\np(x).sum().backward()\nn = torch.nn.utils.clip_grad_norm_(p.parameters(), 1.0)\nprint(float(n))\ntorch.zeros(9, device=d)",
}


@pytest.mark.parametrize("name", SIZES)
def test_a_size_from_a_number_that_is_not_computed_stands_with_the_verdict(dry_run, name):
    found = verdicts(dry_run(START + SIZES[name] + "\n"))
    assert any(words.startswith("with sizes from a number that is not computed (program.py:") for words in found), found


@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_that_a_value_decides_stands_with_the_verdict(dry_run, name):
    found = verdicts(dry_run(START + BRANCHES[name] + "\n"))
    assert any(words.startswith("with a branch decided by a value that is not computed") for words in found), found


@pytest.mark.parametrize("name", HARMLESS)
def test_numbers_that_decide_nothing_leave_the_verdict_alone(dry_run, name):
    ran = dry_run(START + HARMLESS[name] + "\n")
    assert ran.status == 0, ran.err
    assert verdicts(ran) == []


def test_what_a_fraction_decides_and_nobody_can_look_into_is_a_note(dry_run):
    ran = dry_run(START + "import copy\nbest = 0.0\nif x.norm().item() > best:\n    kept = copy.deepcopy({'a': 1})\n")
    assert verdicts(ran) == []
    assert any("and what it calls may take memory" in note["text"] for note in ran.notes())


# Whose they are is not seen, and their names are those of functions that tell.
NOT_LOOKED_INTO = {
    "given_a_number": (
        "import types\nmeter = types.SimpleNamespace(update=lambda n: None)\nmeter.update(x.argmax(1)[3].item())",
        "is not known",
    ),
    "in_a_branch": (
        "import types\nmeter = types.SimpleNamespace(update=lambda n: None)\nif x.max() > 10:\n    meter.update(3)",
        "may take memory",
    ),
}


@pytest.mark.parametrize("name", NOT_LOOKED_INTO)
def test_a_function_that_is_not_seen_is_worth_a_note(dry_run, name):
    program, words = NOT_LOOKED_INTO[name]
    ran = dry_run(START + program + "\ntorch.zeros(9, device=d)\n")
    assert verdicts(ran) == []
    assert any(words in note["text"] for note in ran.notes()), ran.notes()


# What a program checks, and would find wrong with the numbers that stand for those that are not computed.
CHECKS = [
    "if (x.abs() < 5).all():\n    raise ValueError('bad')",
    "if not (x > 5).any():\n    raise ValueError('bad')",
    "if not (x > 5).any().item() or not bool((x > 7).any()):\n    print('no')\n    raise ValueError('bad')",
    "if x.max() < 5: raise ValueError('bad')",
    "assert (x > 5).any(), 'bad'",
    "assert not torch.all(x < 5) and not (x < 7).all()",
    "def check(x):\n    bad = (x.abs() < 5).all()\n    if bad:\n        raise ValueError('bad')\ncheck(x)",
]


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_of_unknown_values_is_passed(dry_run, check):
    ran = dry_run(START + check + "\nprint('went on')")
    assert ran.status == 0 and ran.out.strip() == "went on", ran.err


@pytest.mark.parametrize(
    "check",
    [
        "y = torch.tensor([1.0, 9.0], device=d)\nif (y > 5).any():\n    raise ValueError('bad')",
        "y = torch.tensor([1.0, 9.0], device=d)\nassert (y > 5).all()",
    ],
)
def test_a_check_of_known_values_is_made(dry_run, check):
    assert dry_run(START + check).status != 0


def test_a_truth_value_that_raises_nothing_is_as_it_was(dry_run):
    ran = dry_run(START + "if (x < 5).all():\n    print('small')\nelif (x > 5).all():\n    raise ValueError('bad')")
    assert ran.status == 0 and ran.out.strip() == "small", ran.err
