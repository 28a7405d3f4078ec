"""Results whose size depends on values: counted as an even share where the way a mask was made tells it, else as the most there can be."""

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
    most = tokens * (1 if share == 1 / 8 else 2)
    assert len(told) == 1 and told[0].endswith(f"depends on the values, from 0 to {most}")


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
