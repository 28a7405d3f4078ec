"""How a planned program ends, and what it reads: each row is a program that a stranger may bring, and what must be known of it."""

import json

import pytest

# Numbers that any run on a GPU could give: a program may take their logarithm, divide by them, check them.
VALUES = {
    "mse_loss": "math.log(F.mse_loss(m(x), y).item())",
    "mse_by_hand": "math.log(((m(x) - y) ** 2).mean().item())",
    "rmse": "1 / math.sqrt(((m(x) - y) ** 2).mean().item())",
    "l1_loss": "math.log(F.l1_loss(m(x), y).item())",
    "smooth_l1_loss": "math.log(F.smooth_l1_loss(m(x), y).item())",
    "huber_loss": "math.log(F.huber_loss(m(x), y).item())",
    "bce_with_logits": "math.log(F.binary_cross_entropy_with_logits(m(x), torch.rand_like(y)).item())",
    "cross_entropy": "math.log(F.cross_entropy(m(x), torch.randint(0, 10, (4096,), device='cuda')).item())",
    "perplexity": "math.exp(F.cross_entropy(m(x), torch.randint(0, 10, (4096,), device='cuda')).item())",
    "std": "math.log(m(x).std().item())",
    "norm": "1 / m(x).norm().item()",
    "softmax_sums_to_one": "assert_(abs(m(x).softmax(-1).sum(-1)[0].item() - 1) < 1e-4)",
    "probabilities": "assert_(0 <= m(x).softmax(-1).max().item() <= 1)",
    "finite": "assert_(torch.isfinite(m(x)).all().item())",
    "no_nan": "assert_(not torch.isnan(m(x)).any().item())",
    "not_nan": "assert_((~torch.isnan(m(x))).all().item())",
    "equal_to_itself": "assert_((lambda t: (t == t).all().item())(m(x)))",
    "not_equal_to_another": "assert_(not (m(x).argmax(-1) == torch.randint(0, 10, (4096,), device='cuda')).all().item())",
    "not_the_end_token": "assert_(not (m(x).argmax(-1) == 0).all().item())",
    "categorical_of_logits": "torch.distributions.Categorical(logits=m(x)).log_prob(torch.distributions.Categorical(logits=m(x)).sample()).mean().item()",
    "categorical_of_probs": "torch.distributions.Categorical(probs=m(x).softmax(-1)).entropy().mean().item()",
    "normal": "torch.distributions.Normal(m(x), m(x).exp()).rsample().mean().item()",
    "bernoulli": "torch.distributions.Bernoulli(logits=m(x)).sample().mean().item()",
    "index_of_argmax": "[str(i) for i in range(10)][m(x).argmax(-1)[7].item()]",
    "share_of_a_mask": "1 / (m(x).sigmoid() > 0.5).sum().item()",
    "clipped_gradient": "m(x).sum().backward() or math.log(torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0).item())",
}


def test_a_number_that_is_read_is_one_that_the_operation_can_give(dry_run):
    body = "".join(
        f"\ntry:\n    {code}\nexcept Exception as e: print({name!r}, type(e).__name__, str(e)[:200])\n"
        for name, code in VALUES.items()
    )
    ran = dry_run(
        """import math, torch, torch.nn.functional as F
def assert_(holds):
    if not holds: raise ValueError("it does not hold")
m = torch.nn.Linear(64, 10).cuda()
x, y = torch.randn(4096, 64, device="cuda"), torch.randn(4096, 10, device="cuda")
"""
        + body
        + "print('all of it')\n"
    )
    assert ran.out == "all of it\n", ran.out + ran.err[-600:]


def test_stand_ins_that_change_with_every_step_are_not_kept_for_ever(dry_run):
    ran = dry_run("""
        import torch
        x = torch.ones(4096, device="cuda")
        for i in range(300): x = x * 0.999 + 0.0005
        from faultline.plan.session.session import current
        print(max(len(outcome.stand_ins) for outcome in current().mode._outcomes.values()))
        """)
    assert ran.status == 0 and int(ran.out) <= 64, ran.out + ran.err[-600:]


# (the program, does it end for want of memory whatever its status, was the failure the last that it asked for)
ENDS = {
    "uncaught": ("big()", True, True),
    "another exception in its place": (
        "try: big()\nexcept RuntimeError: raise ValueError('training failed')",
        True,
        True,
    ),
    "another exception from it": (
        "try: big()\nexcept RuntimeError as e: raise ValueError('training failed') from e",
        True,
        True,
    ),
    "caught, and gives up": ("try: big()\nexcept RuntimeError: sys.exit(1)", False, True),
    "caught by BaseException, and gives up": ("try: big()\nexcept BaseException: sys.exit(1)", False, True),
    "caught, and goes on": ("try: big()\nexcept RuntimeError: pass\nsmall()", False, False),
    "caught, goes on, fails otherwise": (
        "try: big()\nexcept RuntimeError: pass\nsmall()\nraise KeyError('x')",
        False,
        False,
    ),
    "none": ("small()", False, False),
}


@pytest.mark.parametrize("name", ENDS)
def test_what_ended_the_program_is_known(dry_run, name):
    program, of_memory, last = ENDS[name]
    ran = dry_run(f"""
import sys, torch
def big(): return torch.empty(100 << 30, dtype=torch.uint8, device="cuda")
def small(): return torch.empty(1 << 20, device="cuda")
kept = small()
{program}
""")
    assert ran.summary["died_of_memory"] is of_memory, ran.err[-400:]
    assert ran.summary["last_was_out_of_memory"] is last


# A loop that catches everything, also the stop: it is ended all the same.
CATCHES = {
    "each step": "while True:\n    try: step()\n    except BaseException: caught += 1",
    "a bare except": "while True:\n    try: step()\n    except: caught += 1",
    "the loop, and begins again": "while True:\n    try:\n        while True: step()\n    except BaseException: caught += 1",
    "finally, which returns": "def once():\n    try: step()\n    finally: return 0\nwhile True: once()",
}


@pytest.mark.parametrize("name", CATCHES)
def test_a_program_that_catches_the_stop_is_ended(dry_run, name):
    ran = dry_run(
        f"""
import torch
m = torch.nn.Linear(16, 16).cuda()
o = torch.optim.SGD(m.parameters(), lr=.1)
caught = 0
def step():
    if caught > 50: raise SystemExit(7)   # a test that fails must end
    m(torch.randn(4, 16, device="cuda")).sum().backward(); o.step(); o.zero_grad()
{CATCHES[name]}
""",
        steps=5,
    )
    assert ran.status == 0
    assert ran.summary["stopped"] == "after 5 optimizer steps" and ran.summary["steps"] == 6
    assert any("caught the dry run's stop" in note["text"] for note in ran.notes())


def test_a_clean_up_after_the_stop_is_run(dry_run):
    ran = dry_run(
        """
        import torch
        m = torch.nn.Linear(16, 16).cuda()
        o = torch.optim.SGD(m.parameters(), lr=.1)
        try:
            while True: m(torch.randn(4, 16, device="cuda")).sum().backward(); o.step(); o.zero_grad()
        finally:
            torch.save(m.state_dict(), "last.pt"); print("saved")
        """,
        steps=5,
    )
    assert ran.status == 0 and ran.out.strip() == "saved"
    assert ran.summary["steps"] == 5 and not any("caught" in note["text"] for note in ran.notes())


# (the program, what must not be taken for a fit)
BEYOND = {
    "cuda:1": ("torch.empty(8, device='cuda:1')", "more GPUs than the plan has"),
    "a model on two": (
        "a, b = torch.nn.Linear(8, 8).to('cuda:0'), torch.nn.Linear(8, 8).to('cuda:1')",
        "more GPUs than the plan has",
    ),
    "set_device": ("torch.cuda.set_device(1)", "more GPUs than the plan has"),
    "one alone": ("torch.empty(8, device='cuda:0')", None),
    "a second that is only asked for": (
        "try: torch.empty(8, device='cuda:1')\nexcept RuntimeError: torch.empty(8, device='cuda:0')",
        None,
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_a_second_gpu_is_a_limit_of_the_plan(dry_run, name):
    program, unplanned = BEYOND[name]
    ran = dry_run(f"import torch\n{program}\n")
    told = ran.summary["unplanned"]
    assert (unplanned in told["text"]) if unplanned else told is None, (told, ran.err[-400:])


def test_that_there_is_one_gpu_is_noted_where_the_program_asks(dry_run):
    ran = dry_run("import torch\nn = torch.cuda.device_count()\nx = torch.empty(8, device=f'cuda:{n - 1}')\n")
    assert [note["line"].rpartition(":")[2] for note in ran.notes() if "device_count() is 1" in note["text"]] == ["2"]


def test_what_a_library_asks_for_is_not_noted(dry_run):
    ran = dry_run("import torch\ntorch.cuda.manual_seed_all(3)\nx = torch.empty(8, device='cuda')\n")
    assert ran.status == 0 and not any("device_count" in note["text"] for note in ran.notes())


@pytest.mark.parametrize(
    "in_child, unplanned", [("x = torch.empty(8, device='cuda')", True), ("x = torch.empty(8)", False)]
)
def test_what_a_fork_does_on_the_gpu_is_said_not_to_be_followed(dry_run, in_child, unplanned):
    ran = dry_run(f"""
import os, torch
pid = os.fork()
if pid == 0:
    {in_child}
    os._exit(0)
os.waitpid(pid, 0)
""")
    told = [json.loads(path.read_text()).get("unplanned") for path in ran.traces[0].parent.glob("process-*.json")]
    assert any(one and "fork" in one["text"] for one in told) is unplanned


# What the program says, and a read of it that must be known although a part of it (u: truth values, n: whole numbers, both unknown) is not.
DECIDED = {
    "True | x": ("(t | u).all().item()", True),
    "x | True": ("(u | t).all().item()", True),
    "False & x": ("(f & u).any().item()", False),
    "logical": ("torch.logical_or(u, t).all().item()", True),
    "in place": ("u.clone().logical_or_(t).all().item()", True),
    "an operator in place": ("v.all().item()", True),
    "0 * x": ("n.mul(torch.zeros(4, dtype=torch.long, device='cuda')).max().item()", 0),
    "a whole number & False": ("(n & ~t).max().item()", 0),
    "max == 0": ("((n & ~(f | u | t)).max() == 0).item()", True),
    "where": ("torch.where(t, t, u).all().item()", True),
    "full of a comparison": (
        "(torch.full((4,), ids.shape[1] >= 8, device='cuda', dtype=torch.bool) | u).all().item()",
        True,
    ),
    "an open one": ("(f | u).any().item()", None),
    "an open one &": ("(t & u).any().item()", None),
    "a part that decides": ("(torch.tensor([True, False, False, False], device='cuda') | u)[1].item()", None),
    "1 * x": ("(n * torch.ones(4, dtype=torch.long, device='cuda')).max().item()", None),
    "a part that is written": ("w[1].item()", None),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_known_values_decide_is_known(dry_run, name):
    code, value = DECIDED[name]
    ran = dry_run(f"""
import torch
ids = torch.zeros(4, 8, dtype=torch.long, device="cuda")
n = torch.randn(4, 4096, device="cuda").argmax(-1)
u, t, f = n > 3, torch.ones(4, dtype=torch.bool, device="cuda"), torch.zeros(4, dtype=torch.bool, device="cuda")
v = u.clone(); v |= t
w = u.clone(); w[0] = True
print({code})
""")
    assert ran.status == 0, ran.err[-400:]
    stand_ins = [note for note in ran.notes() if "stand-in" in note["text"]]
    if value is None:
        assert stand_ins
    else:
        assert ran.out.strip() == str(value) and not stand_ins


# Loops that make tokens: each has a limit in its program, and ends by it as it would on a GPU.
LOOPS = {
    "stopping criteria of transformers": """
unfinished = torch.ones(2, dtype=torch.long, device="cuda")
while True:
    next = step(ids); ids = torch.cat([ids, (next * unfinished)[:, None]], 1)
    done = torch.full((2,), False, device="cuda", dtype=torch.bool)
    done = done | torch.full((2,), ids.shape[1] >= 12, device="cuda", dtype=torch.bool)
    done = done | torch.isin(ids[:, -1], torch.tensor([2], device="cuda"))
    unfinished = unfinished & ~done
    if unfinished.max() == 0: break
""",
    "finished, in place": """
finished = torch.zeros(2, dtype=torch.bool, device="cuda")
while not finished.all():
    next = step(ids); ids = torch.cat([ids, next[:, None]], 1)
    finished |= next == 2
    finished |= ids.shape[1] >= 12
""",
    "unfinished, multiplied": """
unfinished = torch.ones(2, dtype=torch.long, device="cuda")
while unfinished.sum() > 0:
    next = step(ids); ids = torch.cat([ids, next[:, None]], 1)
    unfinished = unfinished.mul((next != 2).long()).mul(torch.tensor(ids.shape[1] < 12, device="cuda").long())
""",
    "lengths that are counted": """
lengths = torch.full((2,), 4, device="cuda")
while (lengths < 12).any():
    ids = torch.cat([ids, step(ids)[:, None]], 1); lengths += 1
""",
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_makes_tokens_ends_by_its_limit(dry_run, name):
    ran = dry_run(f"""
import torch
torch.set_grad_enabled(False)
table, head = torch.nn.Embedding(1000, 64).cuda(), torch.nn.Linear(64, 1000).cuda()
calls = 0
def step(ids):
    global calls
    calls += 1
    if calls > 50: raise SystemExit(7)
    return head(table(ids)[:, -1]).argmax(-1)
ids = torch.randint(3, 1000, (2, 4), device="cuda")
{LOOPS[name]}
print(tuple(ids.shape), calls)
""")
    assert (ran.status, ran.out.strip()) == (0, "(2, 12) 8"), ran.err[-400:]


def test_generate_of_transformers_ends_by_its_limit(dry_run):
    pytest.importorskip("transformers")
    ran = dry_run("""
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
        m = LlamaForCausalLM(LlamaConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, vocab_size=100)).cuda().eval()
        calls = 0
        def count(*_):
            global calls
            calls += 1
            if calls > 30: raise SystemExit(7)
        m.register_forward_pre_hook(count)
        ids = torch.randint(3, 100, (2, 8), device="cuda")
        for options in ({}, {"do_sample": True}, {"num_beams": 2}):
            calls = 0
            print(tuple(m.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, **options).shape), calls)
        """)
    assert (ran.status, ran.out.split("\n")[:-1]) == (0, ["(2, 14) 6"] * 3), ran.err[-400:]


@pytest.mark.parametrize("body, waits", [("while not (step() == 2).all(): pass", True), ("while True: step()", False)])
def test_a_loop_that_waits_for_a_value_is_named(dry_run, body, waits):
    ran = dry_run(
        f"""import torch; from faultline.plan.session import notes; notes._MANY_TRUTHS = 5
head, x = torch.nn.Linear(64, 1000).cuda(), torch.randn(2, 64, device="cuda")
def step(): return head(x).argmax(-1)
{body}
""",
        seconds=2,
    )
    told = [note for note in ran.notes() if note["kind"] == "mode" and "does not end in a dry run" in note["text"]]
    assert [note["line"].rpartition(":")[2] for note in told] == (["4"] if waits else [])


# Attempts that fail, and hold what they made no longer than Python does: until the except block is over, without the garbage collector.
ATTEMPTS = {
    "backward": "x = torch.empty(5 << 28, device='cuda', requires_grad=True); (x * x).sum().backward()",
    "autograd.grad": "x = torch.empty(5 << 28, device='cuda', requires_grad=True); torch.autograd.grad((x * x).sum(), x)",
    "checkpoint": "x = torch.empty(5 << 28, device='cuda', requires_grad=True); torch.utils.checkpoint.checkpoint(lambda t: (t * t).exp().sum(), x, use_reentrant=False).backward()",
    "forward": "x = torch.empty(8 << 28, device='cuda'); x * 2",
    "sort": "x = torch.empty(4 << 28, device='cuda'); x.sort()",
    "nonzero": "x = torch.empty(8 << 28, device='cuda'); x.nonzero()",
    "to the GPU": "x = torch.empty(8 << 28).cuda(); y = torch.empty(8 << 28).cuda()",
    "a shape that is refused": "x = torch.empty(1 << 28, device='cuda'); x + x[:3]",
    "a view that is refused": "x = torch.empty(1 << 28, device='cuda'); x.view(3, 7)",
    "refused in backward": "x = torch.empty(1 << 20, device='cuda', requires_grad=True); y = (x * x).exp(); z = y.sum(); y.add_(1); z.backward()",
    "what a dry run does not know": "x = torch.empty(1 << 28, device='cuda'); torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)",
}


@pytest.mark.parametrize("first", [True, False], ids=["first", "after another"])
def test_a_failed_attempt_is_let_go_of_without_the_garbage_collector(dry_run, first):
    """Each as the very first that the program does on the GPU is too many processes: the one that once was kept."""
    bodies = dict(list(ATTEMPTS.items())[:1]) if first else ATTEMPTS
    ran = dry_run(
        "import gc, torch, torch.utils.checkpoint\ngc.disable()\n"
        + "".join(
            f"""
def attempt():
    {body}
try: attempt(); print({name!r}, "did not fail")
except RuntimeError: pass
if torch.cuda.memory_allocated(): print({name!r}, torch.cuda.memory_allocated())
"""
            for name, body in bodies.items()
        ),
        cold=first,
    )
    assert (ran.status, ran.out) == (0, ""), ran.err[-400:]
