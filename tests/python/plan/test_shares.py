"""Results whose size depends on values: counted as an even share where the way a mask was made tells it, else as the most there can be."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

CHOICES = """
    import torch
    import torch.nn.functional as F
    tokens, experts = {tokens}, 8
    logits = torch.nn.Linear(64, experts, device="cuda")(torch.randn(tokens, 64, device="cuda"))
    weights, chosen = torch.topk(logits.softmax(-1), 2, dim=-1)
    one_hot = F.one_hot(chosen, experts)
    rows = lambda found: print(*(len(part) for part in found)) if isinstance(found, tuple) else print(len(found))
    {use}
"""


@pytest.mark.parametrize("tokens", [256, 8192])
@pytest.mark.parametrize(
    "use, share",
    [
        ("rows(torch.where(one_hot.permute(2, 1, 0)[3])[0])", 2 / 8),
        ("rows(one_hot.permute(2, 1, 0)[3].nonzero())", 2 / 8),
        ("rows((chosen == 3).nonzero())", 2 / 8),
        ("rows(torch.where(chosen == 3)[0])", 2 / 8),
        ("rows(weights[chosen == 3])", 2 / 8),
        ("rows(weights[one_hot[..., 3].bool()])", 2 / 8),
        ("rows(torch.masked_select(weights, chosen == 3))", 2 / 8),
        ("rows((logits.argmax(-1) == 3).nonzero())", 1 / 8),
        ("rows(logits[logits.max(1).indices == 3])", 1 / 8),
    ],
)
def test_what_a_router_sends_to_one_of_eight_is_an_eighth(dry_run, use, share, tokens):
    ran = dry_run(CHOICES.format(tokens=tokens, use=use))
    assert ran.status == 0, ran.err
    assert int(ran.out) == round(tokens * share)
    told = [note["text"] for note in ran.notes() if "if the choice is even" in note["text"]]
    assert len(told) == 1  # as many as there are tokens at most: the two choices of one differ
    assert told[0].endswith(f"depends on the values, from 0 to {tokens}")


def test_a_mask_of_all_experts_has_as_many_as_were_chosen(dry_run):
    ran = dry_run(CHOICES.format(tokens=8192, use="rows(one_hot.nonzero())\n    rows(torch.where(one_hot.bool())[0])"))
    assert ran.status == 0 and ran.out.split() == ["16384", "16384"], ran.err
    assert not [note for note in ran.notes() if "the choice is even" in note["text"]]


@pytest.mark.parametrize(
    "use",
    [
        "rows((logits > 0.5).nonzero())",
        "rows((logits[:, 0] > 0.5).nonzero())",
        "rows(torch.where(logits > logits.mean())[0])",
    ],
)
def test_what_passes_a_threshold_is_counted_as_the_most_there_can_be(dry_run, use):
    ran = dry_run(CHOICES.format(tokens=8192, use=use))
    assert ran.status == 0, ran.err
    assert int(ran.out) == (8192 if "[:, 0]" in use else 8192 * 8)
    assert not [note for note in ran.notes() if "if the choice is even" in note["text"]]


def test_known_choices_are_counted_as_they_are(dry_run):
    ran = dry_run("""
        import torch
        import torch.nn.functional as F
        chosen = torch.tensor([0, 1, 1, 1, 2, 2], device="cuda")
        print(*(len(F.one_hot(chosen, 4)[:, i].nonzero()) for i in range(4)), len((chosen == 1).nonzero()))
    """)
    assert ran.status == 0 and ran.out.split() == ["1", "3", "2", "0", "3"], ran.err


MIXTURE = """
import sys
import torch
import torch.nn.functional as F
tokens, width, experts, each = 4096, 256, 4, 2
way, trains = sys.argv[1:]
first = {"even": None, "first": 0, "last": experts - each}[way]
torch.manual_seed(0)
layers = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(experts)).cuda()
x = torch.randn(tokens, width, device="cuda")
logits = x[:, :experts] * 0.01
if first is not None:
    logits = logits + F.one_hot(torch.arange(first, first + each), experts).sum(0).cuda()
with torch.set_grad_enabled(trains == "trains"):
    weights, chosen = torch.topk(logits.softmax(-1), each, dim=-1)
    mask = F.one_hot(chosen, experts).permute(2, 1, 0)
    out = torch.zeros_like(x)
    for e, layer in enumerate(layers):
        which, token = torch.where(mask[e])
        out = out.index_add(0, token, F.gelu(layer(x[token])) * weights[token, which, None])
if trains == "trains":
    out.square().mean().backward()
"""


@pytest.fixture(scope="module")
def peaks(binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixture")
    (folder / "train.py").write_text(MIXTURE)

    def planned(name, *options, way="even", trains):
        run = folder / f"{name}-{way}-{trains}"
        command = [binary, "plan", "--gpu", "T4", "--no-try", "-o", str(run), *options]
        done = subprocess.run(
            [*command, "--", sys.executable, "train.py", way, trains], cwd=folder, capture_output=True, text=True
        )
        plan = json.loads((run / "report.json").read_text())["plan"]
        assert plan["verdict"] == "fits", done.stderr
        return plan

    return planned


@pytest.mark.parametrize("trains", ["trains", "infers"])
def test_every_routing_needs_what_lies_in_the_interval(peaks, trains):
    told = peaks("plan", trains=trains)["peak"]
    assert told["allocated_least"] < told["allocated"] < told["allocated_most"]
    assert told["allocated_most"] < 2 * told["allocated"]  # every expert with every token would be twice as much
    for way in ("even", "first", "last"):
        real = peaks("real", "--real", way=way, trains=trains)["peak"]["allocated"]
        assert told["allocated_least"] <= real <= told["allocated_most"] + (1 << 20), way


def test_a_width_that_equals_the_rows_of_an_expert_does_not_vary(binary, tmp_path):
    """2048 rows of each expert, and layers as wide, or nearly."""
    peaks = []
    for width in (2048, 2056):
        (tmp_path / "train.py").write_text(MIXTURE.replace("= 4096, 256,", f"= 4096, {width},"))
        command = [binary, "plan", "--gpu", "T4", "--no-try", "-o", str(tmp_path / f"run{width}"), "--"]
        done = subprocess.run(
            [*command, sys.executable, "train.py", "even", "trains"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        peaks.append(json.loads((tmp_path / f"run{width}" / "report.json").read_text())["plan"]["peak"])
    for end in ("allocated_least", "allocated", "allocated_most"):
        assert abs(peaks[0][end] - peaks[1][end]) < 0.02 * peaks[1][end], end
