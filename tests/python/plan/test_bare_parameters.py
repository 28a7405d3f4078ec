"""Parameters that no module has: what an optimizer holds is a parameter, its gradient a gradient, and its states are the optimizer's."""

import pytest

KINDS = {
    "parameter": "[torch.nn.Parameter(torch.randn(2048, 2048, device='cuda')) for _ in range(3)]",
    "requires_grad": "[torch.randn(2048, 2048, device='cuda', requires_grad=True) for _ in range(3)]",
    "set_later": "[torch.randn(2048, 2048, device='cuda').requires_grad_() for _ in range(3)]",
    "moved": "[torch.randn(2048, 2048).cuda().requires_grad_() for _ in range(3)]",
}
LOOP = """
for _ in range(4):
    x = torch.randn(16, 2048, device='cuda')
    for w in ws:
        x = torch.tanh(x @ w)
    x.sum().backward()
    opt.step()
    opt.zero_grad()
"""
WHOLE = 3 * 2048 * 2048 * 4


def live(ran):
    return ran.report()["devices"][0]["account"]["live"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "optimizer, states", (("Adam(ws)", 2), ("SGD(ws, lr=0.1)", 0), ("SGD([{'params': ws}], lr=0.1, momentum=0.9)", 1))
)
def test_what_an_optimizer_holds_is_a_parameter(dry_run, kind, optimizer, states):
    ran = dry_run(f"import torch\nws = {KINDS[kind]}\nopt = torch.optim.{optimizer}\n" + LOOP)
    assert ran.status == 0, ran.err
    seen = live(ran)
    assert seen["parameters"] == WHOLE
    assert seen["gradients"] == WHOLE
    assert WHOLE * states <= seen["optimizer"] <= WHOLE * states + 8192
    assert seen["other"] < 1 << 20


def test_what_no_optimizer_holds_is_none(dry_run):
    ran = dry_run(
        "import torch\nws = [torch.nn.Parameter(torch.randn(2048, 2048, device='cuda'))]\nopt = torch.optim.SGD(ws, lr=0.1)\n"
        "data = torch.randn(5000, 2048, device='cuda')\n" + LOOP
    )
    seen = live(ran)
    assert seen["parameters"] == WHOLE // 3
    assert seen["other"] >= 5000 * 2048 * 4


def test_a_group_that_is_added_later_counts(dry_run):
    ran = dry_run(
        f"import torch\nws = {KINDS['parameter']}\nopt = torch.optim.SGD(ws[:1], lr=0.1)\nopt.add_param_group({{'params': ws[1:]}})\n"
        + LOOP
    )
    assert live(ran)["parameters"] == WHOLE
