"""Loops that end by a value a dry run does not compute: they go on to their other limit, or the verdict says what it does not know."""

import pytest

from test_decided_by_values import verdicts

START = """import torch
d = "cuda"
head = torch.nn.Linear(16, 100).to(d)
x = torch.randn(2, 16, device=d)
cache = torch.zeros(1, 1024, device=d)
def grow():
    global cache
    cache = torch.cat([cache, torch.zeros(1, 1024, device=d)])
"""

# Generation: it runs to its limit, 30 rounds, whatever its end token is.
GENERATES = {
    "item": "for i in range(30):\n    t = head(x)[0].argmax(-1)\n    if t.item() == EOS: break\n    grow()",
    "variable": "for i in range(30):\n    t = head(x)[0].argmax(-1).item()\n    if t == EOS:\n        break\n    grow()",
    "and": "n = 0\nwhile n < 30:\n    t = head(x)[0].argmax(-1)\n    if t.item() == EOS and n >= 0: break\n    grow(); n += 1",
    "in": "stops = {EOS, 100257}\nfor i in range(30):\n    t = head(x)[0].argmax(-1)\n    if t.item() in stops: break\n    grow()",
    "all": "for i in range(30):\n    t = head(x).argmax(-1)\n    if (t == EOS).all(): break\n    grow()",
    "finished": "f = torch.zeros(2, dtype=torch.bool, device=d)\nfor i in range(30):\n    t = head(x).argmax(-1)\n    f = f | (t == EOS)\n    if torch.all(f): break\n    grow()",
    "any": "f = torch.zeros(2, dtype=torch.bool, device=d)\nfor i in range(30):\n    f |= head(x).argmax(-1) == EOS\n    if torch.any(f).item(): break\n    grow()",
    "not_equal": "left = torch.ones(2, dtype=torch.long, device=d)\nfor i in range(30):\n    left = left * (head(x).argmax(-1) != EOS).long()\n    if left.max() == 0: break\n    grow()",
    "isin": "s = torch.tensor([EOS, 1], device=d)\nfor i in range(30):\n    if torch.isin(head(x).argmax(-1), s).any(): break\n    grow()",
    "mark": "done, n = False, 0\nwhile not done and n < 30:\n    if head(x)[0].argmax(-1).item() == EOS: done = True\n    grow(); n += 1",
    "marked": "done, n = False, 0\nwhile not done and n < 30:\n    done = head(x)[0].argmax(-1).item() == EOS\n    grow(); n += 1",
    "multinomial": "for i in range(30):\n    t = torch.multinomial(head(x).softmax(-1), 1)\n    if t[0].item() == EOS: break\n    grow()",
    "topk": "for i in range(30):\n    t = head(x).topk(5).indices[0, 0]\n    if t.item() == EOS: break\n    grow()",
    "joined": "ids = torch.tensor([[5, 6]], device=d)\nfor i in range(30):\n    ids = torch.cat([ids, head(x)[:1].argmax(-1, keepdim=True)], 1)\n    if ids[0, -1].item() == EOS: break\n    grow()",
    "list": "for i in range(30):\n    t = head(x).argmax(-1).tolist()\n    if all(one == EOS for one in t): break\n    grow()",
    "host": "for i in range(30):\n    t = head(x).argmax(-1).cpu()\n    if t[0] == EOS: break\n    grow()",
    "function": "def step():\n    return head(x)[0].argmax(-1).item()\nfor i in range(30):\n    t = step()\n    if t == EOS: break\n    grow()",
    "returns": "def run():\n    for i in range(30):\n        if head(x)[0].argmax(-1).item() == EOS: return i\n        grow()\nrun()",
}


@pytest.mark.parametrize("eos", [0, 2, 99])
def test_a_loop_over_tokens_runs_to_its_limit(binary, tmp_path, eos):
    from dry import dry_run

    for name, code in GENERATES.items():
        (tmp_path / name).mkdir()
        ran = dry_run(binary, tmp_path / name, START + code.replace("EOS", str(eos)) + "\nprint(len(cache))\n")
        assert ran.out.strip() == "31", (name, ran.out, ran.err)
        assert verdicts(ran) == [], name


# The value ends it, or nothing else does.
ENDED = {
    "two_choices": "for i in range(30):\n    if head(x)[0, :2].argmax(-1).item() == 0: break\n    grow()",
    "drawn": "for i in range(30):\n    t = torch.randint(0, 9, (70000,), device=d)[3].item()\n    if t == 0:\n        print(t)\n        break\n    grow()",
    "fraction": "for i in range(30):\n    if head(x).softmax(-1).max().item() < 0.5: break\n    grow()",
    "smaller": "y = torch.rand(1024, device=d)\nwhile bool((y > 0.01).any()):\n    grow(); y = y * 0.9",
    "smaller_with_a_limit": "y, n = torch.rand(1024, device=d), 0\nwhile n < 1000 and (y > 0.01).any():\n    grow(); y = y * 0.9; n += 1",
    "error": "y = torch.rand(1024, device=d)\ne, n = 1.0, 0\nwhile e > 0.01 and n < 1000:\n    grow(); y = y * 0.9; n += 1\n    e = y.max().item()",
    "mark": "y, done = torch.rand(1024, device=d), False\nfor i in range(1000):\n    y = y * 0.9\n    if y.max().item() < 0.01: done = True\n    if done: break\n    grow()",
    "returns": "def run(y):\n    for i in range(1000):\n        y = y * 0.9\n        if y.max() < 0.01: return i\n        grow()\nrun(torch.rand(1024, device=d))",
    "returns_before_its_work": "def run(y):\n    if y.max().item() < 2: return\n    for i in range(30): grow()\nrun(torch.rand(1024, device=d))",
    "too_large": "y = torch.rand(1024, device=d)\nwhile (y > -1).any():\n    cache = torch.cat([cache, torch.zeros(1 << 20, 1024, device=d)])",
}


@pytest.mark.parametrize("code", ENDED.values(), ids=ENDED.keys())
def test_a_loop_that_a_value_ends_is_said_with_the_verdict(dry_run, code):
    assert any("loop" in words for words in verdicts(dry_run(START + code)))


# The value does not decide how often: another limit does, or the value is known.
KNOWN = {
    "limit": "y, n = torch.rand(1024, device=d), 0\nwhile (y > 0.01).any() and n < 5:\n    grow(); y = y * 0.9; n += 1",
    "limit_first": "y, n = torch.rand(1024, device=d), 0\nwhile n < 5 and (y > 0.01).any():\n    grow(); y = y * 0.9; n += 1",
    "converged": "for i in range(9):\n    l = head(x).square().mean()\n    if l.item() < 1e-3: break\n    grow()",
    "not_a_number": "for i in range(9):\n    l = head(x).square().mean()\n    if torch.isnan(l): break\n    grow()",
    "known": "y = torch.arange(9, device=d)\nwhile (y < 20).any():\n    grow(); y = y + 1",
    "in_the_body": "n = 0\nwhile True:\n    n += 1\n    if n > 9: break\n    if head(x)[0].argmax(-1).item() == 0: break\n    grow()",
    "returns_after_its_work": "def run(y):\n    grow()\n    if y.max().item() < 2: return 1\n    return 2\nrun(torch.rand(1024, device=d))",
}


@pytest.mark.parametrize("code", KNOWN.values(), ids=KNOWN.keys())
def test_a_loop_with_another_limit_is_said_plainly(dry_run, code):
    ran = dry_run(START + code)
    assert ran.status == 0 and verdicts(ran) == [], ran.err


def test_the_trace_function_of_the_program_is_its_own(dry_run):
    ran = dry_run(
        START
        + "import sys\nmine = lambda *a: None\nsys.settrace(mine)\n"
        + GENERATES["item"].replace("EOS", "0")
        + "\nprint(sys.gettrace() is mine)\n"
    )
    assert ran.out == "True\n", ran.err


# A counter of rounds without progress, which a stand-in counts: 3 rounds of it end the loop, where there would be 200.
PATIENCE = {
    "counter": "best, bad = 9e9, 0\nfor e in range(200):\n    v = head(x).pow(2).mean().item()\n    if v < best:\n        best, bad = v, 0\n    else:\n        bad += 1\n    if bad >= 3:\n        break\n    grow()",
    "inside": "best, bad = 9e9, 0\nfor e in range(200):\n    v = head(x).pow(2).mean().item()\n    if v < best:\n        best = v; bad = 0\n    else:\n        bad = bad + 1\n        if bad >= 3: break\n    grow()",
    "class": "class Stop:\n    def __init__(s): s.best, s.bad, s.stop = 9e9, 0, False\n    def step(s, v):\n        if v < s.best: s.best, s.bad = v, 0\n        else:\n            s.bad += 1\n            if s.bad >= 3: s.stop = True\nstop = Stop()\nfor e in range(200):\n    v = head(x).pow(2).mean().item()\n    stop.step(v)\n    if stop.stop: break\n    grow()",
    "called": "class Stop:\n    def __init__(s): s.best, s.bad = 9e9, 0\n    def __call__(s, v):\n        if v < s.best:\n            s.best, s.bad = v, 0\n            return False\n        s.bad += 1\n        return s.bad >= 3\nstop = Stop()\nfor e in range(200):\n    if stop(head(x).pow(2).mean().item()): break\n    grow()",
    "function": "bad, best = 0, 9e9\ndef worse(v):\n    global bad, best\n    if v >= best:\n        bad += 1\n    best = min(best, v)\n    return bad >= 3\ndef train():\n    for e in range(200):\n        v = head(x).pow(2).mean().item()\n        if worse(v):\n            break\n        grow()\ntrain()",
}


@pytest.mark.parametrize("code", PATIENCE.values(), ids=PATIENCE)
def test_early_stopping_by_a_counter_is_said_with_its_rounds(dry_run, code):
    (said,) = verdicts(dry_run(START + code))
    assert said.startswith("with a loop that a value ends which is not computed (program.py:")
    assert said.endswith(", after 4 rounds)"), said


# The counter that ends the loop has nothing to do with the value.
COUNTED = {
    "rounds": "best, n = 9e9, 0\nfor e in range(200):\n    v = head(x).pow(2).mean().item()\n    if v < best: best = v\n    n += 1\n    if n >= 4: break\n    grow()",
    "not_reached": "best, bad = 9e9, 0\nfor e in range(10):\n    v = head(x).pow(2).mean().item()\n    if v < best: best, bad = v, 0\n    else: bad += 1\n    if bad >= 50: break\n    grow()",
}


@pytest.mark.parametrize("code", COUNTED.values(), ids=COUNTED)
def test_a_counter_that_no_value_counts_or_that_is_not_reached_is_silent(dry_run, code):
    assert verdicts(dry_run(START + code)) == []
