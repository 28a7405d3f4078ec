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
    body = "".join(f"\ntry:\n    {code}\nexcept Exception as e: print({name!r}, type(e).__name__, str(e)[:200])\n" for name, code in VALUES.items())
    ran = dry_run("""import math, torch, torch.nn.functional as F
def assert_(holds):
    if not holds: raise ValueError("it does not hold")
m = torch.nn.Linear(64, 10).cuda()
x, y = torch.randn(4096, 64, device="cuda"), torch.randn(4096, 10, device="cuda")
""" + body + "print('all of it')\n")
    assert ran.out == "all of it\n", ran.out + ran.err[-600:]


def test_stand_ins_that_change_with_every_step_are_not_kept_for_ever(dry_run):
    ran = dry_run("""
        import torch
        x = torch.ones(4096, device="cuda")
        for i in range(300): x = x * 0.999 + 0.0005
        from faultline.plan.dry_run_session import current
        print(max(len(outcome.stand_ins) for outcome in current().mode._outcomes.values()))
        """)
    assert ran.status == 0 and int(ran.out) <= 64, ran.out + ran.err[-600:]


# (the program, does it end for want of memory whatever its status, was the failure the last that it asked for)
ENDS = {
    "uncaught": ("big()", True, True),
    "another exception in its place": ("try: big()\nexcept RuntimeError: raise ValueError('training failed')", True, True),
    "another exception from it": ("try: big()\nexcept RuntimeError as e: raise ValueError('training failed') from e", True, True),
    "caught, and gives up": ("try: big()\nexcept RuntimeError: sys.exit(1)", False, True),
    "caught by BaseException, and gives up": ("try: big()\nexcept BaseException: sys.exit(1)", False, True),
    "caught, and goes on": ("try: big()\nexcept RuntimeError: pass\nsmall()", False, False),
    "caught, goes on, fails otherwise": ("try: big()\nexcept RuntimeError: pass\nsmall()\nraise KeyError('x')", False, False),
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
    ran = dry_run(f"""
import torch
m = torch.nn.Linear(16, 16).cuda()
o = torch.optim.SGD(m.parameters(), lr=.1)
caught = 0
def step():
    if caught > 50: raise SystemExit(7)   # a test that fails must end
    m(torch.randn(4, 16, device="cuda")).sum().backward(); o.step(); o.zero_grad()
{CATCHES[name]}
""", steps=5)
    assert ran.status == 0
    assert ran.summary["stopped"] == "after 5 optimizer steps" and ran.summary["steps"] == 6
    assert any("caught the dry run's stop" in note["text"] for note in ran.notes())


def test_a_clean_up_after_the_stop_is_run(dry_run):
    ran = dry_run("""
        import torch
        m = torch.nn.Linear(16, 16).cuda()
        o = torch.optim.SGD(m.parameters(), lr=.1)
        try:
            while True: m(torch.randn(4, 16, device="cuda")).sum().backward(); o.step(); o.zero_grad()
        finally:
            torch.save(m.state_dict(), "last.pt"); print("saved")
        """, steps=5)
    assert ran.status == 0 and ran.out.strip() == "saved"
    assert ran.summary["steps"] == 5 and not any("caught" in note["text"] for note in ran.notes())


# (the program, what must not be taken for a fit)
BEYOND = {
    "cuda:1": ("torch.empty(8, device='cuda:1')", "more GPUs than the plan has"),
    "a model on two": ("a, b = torch.nn.Linear(8, 8).to('cuda:0'), torch.nn.Linear(8, 8).to('cuda:1')", "more GPUs than the plan has"),
    "set_device": ("torch.cuda.set_device(1)", "more GPUs than the plan has"),
    "one alone": ("torch.empty(8, device='cuda:0')", None),
    "a second that is only asked for": ("try: torch.empty(8, device='cuda:1')\nexcept RuntimeError: torch.empty(8, device='cuda:0')", None),
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


@pytest.mark.parametrize("in_child, unplanned", [("x = torch.empty(8, device='cuda')", True), ("x = torch.empty(8)", False)])
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
