"""Gradients that are kept for two batches, as accumulation keeps them: of each optimizer and model by itself. And what piles up: kept by a graph, or by itself."""

import pytest

pytest.importorskip("torch")

MAKE = """import torch
a, b = torch.nn.Linear(64, 64).cuda(), torch.nn.Linear(64, 64).cuda()
oa, ob = torch.optim.SGD(a.parameters(), 0.1), torch.optim.SGD(b.parameters(), 0.1)
def train(net, o, *clear):
    for one in clear:
        one.zero_grad()
    print(net is a, net.weight.grad is not None)
    net(torch.ones(2, 64, device="cuda")).sum().backward(); o.step()
for i in range(6):
"""
KEPT = {
    "one": ("    train(a, oa, oa)", {True}),
    "two optimizers": ("    train(a, oa, oa); train(b, ob, ob)", {True, False}),
    "model and optimizer": ("    train(a, oa, oa, a)", {True}),
    "optimizer twice": ("    train(a, oa, oa, oa)", {True}),
    "four clear": ("    train(a, oa, oa, a); train(b, ob, b, ob)", {True, False}),
}


@pytest.mark.parametrize(("loop", "nets"), KEPT.values(), ids=KEPT)
def test_gradients_of_every_model_are_kept_for_two_batches(dry_run, binary, tmp_path_factory, loop, nets):
    from dry import dry_run as run

    ran = dry_run(MAKE + loop, changes={"accumulate": "true"})
    assert ran.status == 0, ran.err
    said = [line.split() for line in ran.out.split("\n") if line]
    for net in nets:
        assert [kept for which, kept in said if which == str(net)] == ["False", "True"] * 3, ran.out
    assert "accumulate" in ran.summary["changes"]
    plain = run(binary, tmp_path_factory.mktemp("plain"), MAKE + loop)
    assert "True" not in [line.split()[1] for line in plain.out.split("\n") if line]


LEAK = """import torch
net = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
kept = []
for i in range(24):
    x = torch.randn(256, 512, device="cuda")
    y = net(x)
    loss = (y ** 2).mean()
    optimizer.zero_grad()
    LINE
    optimizer.step()
"""
HELD = {
    "the graph was freed": ("loss.backward(); kept.append(y)", False),
    "no graph": ("loss.backward(); kept.append(y.detach())", False),
    "its graph": ("(loss * 1).backward(retain_graph=True); kept.append(y)", True),
    "no pass": ("kept.append(y)", True),
}


@pytest.mark.parametrize(("line", "by_graph"), HELD.values(), ids=HELD)
def test_detach_is_advised_where_a_graph_keeps_what_piles_up(dry_run, line, by_graph):
    ran = dry_run(LEAK.replace("LINE", line))
    assert ran.status == 0, ran.err
    leaks = [finding for finding in ran.report()["findings"] if finding["rule"] == "memory/leak"]
    assert leaks
    tries = [one for finding in leaks for one in finding["tries"]]
    advised = [one for one in tries if "`.detach()` of it" in one["what"]]
    assert bool(advised) == by_graph, leaks
    assert any("their autograd graph and its activations" in str(finding) for finding in leaks) <= by_graph
    if by_graph:  # y itself stays: what is saved is less than all
        whole = max(finding["bytes"] for finding in leaks)
        assert 0 < advised[0]["saves_bytes"] <= whole - 24 * 256 * 512 * 4 * 0.9
