"""Indices whose values are the program's own, and which lie outside their dimension: a GPU stops at them with a device-side assert."""

import pytest

START = """
import torch
import torch.nn.functional as F
d = 'cuda'
table = torch.nn.Embedding(100, 8).to(d)
logits = torch.randn(64, 10, device=d, requires_grad=True)
image = torch.randn(2, 5, 8, 8, device=d)
x = torch.randn(20, 30, device=d)
large = torch.randint(0, 100, (300, 400))
"""
OUTSIDE = {
    "label_is_the_number_of_classes": ("F.cross_entropy(logits, torch.full((64,), 10).to(d))", "index 10 is"),
    "one_label_counted_from_one": (
        "F.cross_entropy(logits, (torch.arange(64) % 10 + 1).to(d))",
        "allowed 0 to 9, found 1 to 10",
    ),
    "negative_label": ("F.nll_loss(logits, torch.tensor([-1] + [3] * 63).to(d))", "index -1 is"),
    "ignored_by_another_number": (
        "F.cross_entropy(logits, torch.tensor([-1] * 64, device=d), ignore_index=-100)",
        "-1",
    ),
    "label_of_a_pixel": ("F.cross_entropy(image, torch.full((2, 8, 8), 5).to(d))", "dimension 1, which has 5"),
    "token_is_the_number_of_rows": ("table(torch.tensor([3, 100], device=d))", "index 100 is"),
    "padding_by_minus_one": ("table(torch.tensor([[3, -1]]).to(d))", "index -1 is"),
    "token_of_many": ("large[7, 9] = 100\ntable(large.to(d))", "index 100 is"),
    "drawn_on_the_gpu": ("table(torch.randint(0, 200, (300, 400), device=d))", "is out of range for dimension 0"),
    "gather": ("x.gather(1, torch.tensor([[30]] * 20).to(d))", "dimension 1, which has 30"),
    "gather_from_the_end": ("x.gather(1, torch.tensor([[-1]] * 20).to(d))", "index -1 is"),
    "index_select": ("x.index_select(0, torch.tensor([20]).to(d))", "dimension 0, which has 20"),
    "scatter": ("x.scatter(0, torch.tensor([[25] * 30]).to(d), 1.0)", "index 25 is"),
    "scatter_add_in_place": ("x.scatter_add_(1, torch.tensor([[31]] * 20, device=d), x)", "index 31 is"),
    "index_add": ("x.index_add(0, torch.tensor([20], device=d), x[:1])", "index 20 is"),
    "index_copy": ("x.index_copy(0, torch.tensor([-1], device=d), x[:1])", "index -1 is"),
    "by_a_list_of_the_host": ("x[torch.tensor([0, 20])]", "index 20 is"),
    "second_dimension": ("x[:, torch.tensor([30], device=d)]", "dimension 1, which has 30"),
    "too_far_from_the_end": ("x[torch.tensor([-21], device=d)]", "index -21 is"),
    "put": ("x[torch.tensor([0, 21], device=d)] = 0", "index 21 is"),
    "take": ("x.take(torch.tensor([600], device=d))", "a tensor of 600"),
    "bag": ("F.embedding_bag(torch.tensor([[100]], device=d), table.weight)", "index 100 is"),
    "written_later": (
        "i = torch.empty(3, dtype=torch.long, device=d)\nfor k in range(3):\n    i[k] = k + 98\ntable(i)",
        "index 100 is",
    ),
    "bound_by_arithmetic": ("table(torch.arange(50, device=d) * 2 + 2)", "index 100 is"),
}
INSIDE = {
    "last_class": "F.cross_entropy(logits, torch.full((64,), 9).to(d)).backward()",
    "ignored": "F.cross_entropy(logits, torch.tensor([-100] * 32 + [9] * 32).to(d)).backward()",
    "all_ignored": "F.cross_entropy(logits, torch.full((64,), -100, device=d))",
    "ignored_beyond_the_classes": "F.cross_entropy(image, torch.full((2, 8, 8), 255).to(d), ignore_index=255)",
    "ignored_of_many": "y = torch.randint(0, 10, (70000,))\ny[::3] = -100\nF.cross_entropy(torch.randn(70000, 10, device=d), y.to(d))",
    "probabilities": "F.cross_entropy(logits, torch.full((64, 10), 0.1, device=d))",
    "padding": "torch.nn.Embedding(100, 8, padding_idx=0).to(d)(torch.tensor([[5, 0, 0]], device=d))",
    "last_row": "table(torch.tensor([99], device=d))",
    "many_tokens": "table(large.to(d))",
    "part_of_many": "large[-1] = 100\ntable(large.to(d)[:-1])",
    "changed_on_the_gpu": "large[0] = 100\ng = large.to(d)\ng.clamp_(max=99)\ntable(g)",
    "drawn_on_the_gpu": "table(torch.randint(0, 100, (300, 400), device=d))",
    "not_known": "table(torch.randn(300, 400, device=d).argmax(1))",
    "from_the_end": "x[torch.tensor([-1, -20], device=d)]\nx[:, torch.tensor([-30])] = 0",
    "fill_from_the_end": "x.index_fill(0, torch.tensor([-1], device=d), 0.0)",
    "mask": "x[torch.ones(20, 30, dtype=torch.bool, device=d)] = 0\nx[torch.arange(20, device=d) > 3]",
    "mask_then_index": "x[torch.ones(20, dtype=torch.bool, device=d), torch.tensor([29], device=d)]",
    "not_written": "i = torch.empty(300, dtype=torch.long, device=d)\ntable(i)\ntable(i.clone() + 5)",
    "mask_that_is_not_known": "x[torch.randn(20, 30, device=d) > 0]\nx[torch.randn(20, 30, device=d).argmax(1) == 3]",
    "written_later": "i = torch.empty(3, dtype=torch.long, device=d)\nfor k in range(3):\n    i[k] = k\ntable(i)",
    "nothing": "table(torch.empty(0, dtype=torch.long, device=d))\nx[torch.empty(0, dtype=torch.long)]",
    "gather": "x.gather(1, torch.tensor([[29]] * 20).to(d))",
    "topk": "x.gather(1, x.topk(3, dim=1).indices)",
    "one_hot": "F.one_hot(torch.tensor([0, 9], device=d), 10)",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_an_index_outside_is_named_with_its_line(dry_run, name):
    code, says = OUTSIDE[name]
    ran = dry_run(START + code + "\nprint('went on')\n")
    assert "went on" not in ran.out and "device-side assert triggered" in ran.err, ran.err
    (finding,) = [f for f in ran.report()["findings"] if f["rule"] == "tensor/index-out-of-range"]
    assert finding["severity"] == "error" and says in finding["message"], finding
    assert finding["location"]["line"] == len((START + code).splitlines())


def test_indices_inside_or_not_known_are_let_be(dry_run):
    body = "".join(
        f"def {name}():\n" + "".join(f"    {line}\n" for line in code.splitlines()) for name, code in INSIDE.items()
    )
    calls = "".join(f"large = torch.randint(0, 100, (300, 400))\n{name}()\n" for name in INSIDE)
    ran = dry_run(START + body + calls)
    assert ran.status == 0, ran.err
    assert "tensor/index-out-of-range" not in ran.rules()


def test_an_error_that_is_caught_is_still_one(dry_run):
    ran = dry_run(START + "try:\n    table(torch.tensor([100], device=d))\nexcept RuntimeError:\n    pass\nx * 2\n")
    (finding,) = [f for f in ran.report()["findings"] if f["rule"] == "tensor/index-out-of-range"]
    assert finding["severity"] == "error"
