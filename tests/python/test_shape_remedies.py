"""What tensor/shape-mismatch proposes is done to real tensors, and PyTorch takes them: random operations that it refuses, thousands of them in one trace.

Needs PyTorch (without a GPU); the rule's own tests do not.
"""

import json
import random
import re
import subprocess

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
ROUNDS = 400


def shape_of(tensor):
    return "[" + ",".join(map(str, tensor.shape)) + "]"


def shapes(rng, ranks, extents=(1, 2, 3, 4, 6)):
    return [torch.zeros([rng.choice(extents) for _ in range(rank)]) for rank in ranks]


class Family:
    """op: its name in the trace; make(rng): operands; call(*operands): PyTorch's answer."""

    def __init__(self, op, make, call):
        self.op, self.make, self.call = op, make, call


def view_operands(rng):
    return shapes(rng, [rng.choice((2, 3))]) + [[rng.choice((2, 3, 4, 5, 6)) for _ in range(rng.choice((1, 2, 3)))]]


def class_operands(rng):
    n, c, t = (rng.choice((2, 3, 4)) for _ in range(3))
    scores = rng.choice(([n, c], [n, t, c], [n * t, c], [n, t, t, c]))
    target = rng.choice(([n], [n, 1], [n, t], [n * t], [n, c], [n, t, t]))
    return [torch.zeros(scores), torch.zeros(target, dtype=torch.long)]


def convolution_operands(rng):
    rank = rng.choice((3, 4))
    weight = torch.zeros([4, rng.choice((1, 2, 3))] + [2] * (rank - 2))
    return [torch.zeros([rng.choice((1, 2, 3, 5)) for _ in range(rank - rng.choice((0, 0, 1)))]), weight]


FAMILIES = [
    Family("aten::mm", lambda rng: shapes(rng, [rng.choice((2, 2, 2, 3)), 2]), torch.mm),
    Family("aten::bmm", lambda rng: shapes(rng, (3, 3)), torch.bmm),
    Family("aten::matmul", lambda rng: shapes(rng, (rng.choice((1, 2, 3)), rng.choice((1, 2, 3)))), torch.matmul),
    Family("aten::addmm", lambda rng: shapes(rng, (1, 2, 2)), torch.addmm),
    Family("aten::linear", lambda rng: shapes(rng, (rng.choice((2, 3, 4)), 2)), F.linear),
    Family("aten::add", lambda rng: shapes(rng, (rng.choice((1, 2, 3, 4)), rng.choice((1, 2, 3, 4)))), torch.add),
    Family(
        "aten::mul_",
        lambda rng: shapes(rng, (rng.choice((2, 3)), rng.choice((1, 2, 3)))),
        lambda a, b: a.clone().mul_(b),
    ),
    Family(
        "aten::cat",
        lambda rng: shapes(rng, (2, rng.choice((2, 2, 1)), 2), (1, 2, 3)) + [rng.choice((0, 1))],
        lambda *given: torch.cat(given[:-1], given[-1]),
    ),
    Family("aten::stack", lambda rng: shapes(rng, (2, 2), (1, 2, 3)), lambda *given: torch.stack(given)),
    Family("aten::view", view_operands, lambda a, target: a.view(target)),
    Family("aten::cross_entropy_loss", class_operands, F.cross_entropy),
    Family("aten::convolution", convolution_operands, lambda x, w: (F.conv2d if w.dim() == 4 else F.conv1d)(x, w)),
    Family(
        "aten::native_layer_norm",
        lambda rng: shapes(rng, (3,), (2, 3, 4)) + [rng.choice((2, 3, 4))],
        lambda x, n: F.layer_norm(x, (n,)),
    ),
    Family(
        "torch.nn.functional.binary_cross_entropy_with_logits",
        lambda rng: shapes(rng, (rng.choice((1, 2, 3)), rng.choice((1, 2)))),
        F.binary_cross_entropy_with_logits,
    ),
]


def attempt(family, operands):
    try:
        return family.call(*operands), None
    except (RuntimeError, ValueError, IndexError) as error:
        return None, str(error).splitlines()[0]


def applied(family, operands, what):
    """The operands, or the call, changed as the sentence says."""
    given = list(operands)
    code = re.findall(r"`([^`]+)`", what)
    named = [int(number) - 1 for number in re.findall(r"operand (\d+)", what)]
    if "torch.matmul" in what:
        return lambda: torch.matmul(*given)
    if what.startswith("Swap the two factors"):
        given[-2:] = given[:-3:-1]
    elif match := re.search(r"nn\.Linear\((\d+), (\d+)\)", what):
        given[1] = torch.zeros(int(match[2]), int(match[1]))
    elif match := re.search(r"Write (\d+) in place of (-?\d+) in dimension (\d+)", what):
        assert given[1][int(match[3])] == int(match[2])
        given[1] = [*given[1][: int(match[3])], int(match[1]), *given[1][int(match[3]) + 1 :]]
    elif match := re.search(r"torch\.cat\(…, dim=(\d+)\)", what):
        return lambda: torch.cat(given, int(match[1]))
    elif "pad_sequence" in what:
        return lambda: torch.nn.utils.rnn.pad_sequence(given, batch_first=True)
    elif "another dimension" in what:
        given[-1] = int(re.search(r"dim=(\d+)", what)[1])
    elif "in_channels=" in what:
        given[1] = torch.zeros(4, int(re.search(r"in_channels=(\d+)", what)[1]), *given[1].shape[2:])
    elif "normalized_shape=" in what:
        given[1] = int(re.search(r"normalized_shape=(\d+)", what)[1])
    elif "one-hot" in what:
        given[1] = given[1].argmax(1)
    elif any(part.startswith(("scores.", "target.")) for part in code):
        for part in code:
            given[0 if part.startswith("scores.") else 1] = eval(part, {"scores": given[0], "target": given[1]})
    else:
        targets = named or [1 if "target" in what else 0]
        for at in targets:
            given[at] = eval("t" + code[0], {"t": given[at]})
        if match := re.search(r"along dim=(\d+)", what):
            given[-1] = int(match[1])
    return lambda: family.call(*given)


@pytest.fixture(scope="module")
def refused():
    """(family, operands, words) of operations that PyTorch refused."""
    rng = random.Random(7)
    found = []
    for family in FAMILIES:
        for _ in range(ROUNDS):
            operands = family.make(rng)
            _, words = attempt(family, operands)
            if words is not None:
                found.append((family, operands, words))
    return found


@pytest.fixture(scope="module")
def findings(refused, binary, tmp_path_factory):
    lines = ["faultline-trace-text 1"]
    for number, (family, operands, words) in enumerate(refused, 1):
        lines.append(f"op-begin {family.op} at run.py:{number} main")
        for operand in operands:
            if isinstance(operand, torch.Tensor):
                lines.append(f"tensor-note tensor={str(operand.dtype)[6:]}{shape_of(operand)}")
        lines.append(f"op-end {json.dumps(words)} failed")
    path = tmp_path_factory.mktemp("remedies") / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    done = subprocess.run([binary, "explain", "--format", "json", str(path)], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    return {finding["location"]["line"]: finding for finding in json.loads(done.stdout)["findings"]}


def test_every_refusal_is_found(refused, findings):
    missing = {
        (refused[number - 1][0].op, refused[number - 1][2])
        for number in range(1, len(refused) + 1)
        if number not in findings
    }
    assert missing == set()


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.op)
def test_what_is_proposed_is_taken(family, refused, findings):
    proposed = 0
    for number, (of, operands, words) in enumerate(refused, 1):
        if of is not family:
            continue
        for change in findings[number]["tries"]:
            result = applied(family, operands, change["what"])()
            if match := re.search(r"gives (\[[\d,]*\])|the result is (\[[\d,]*\])", change["what"]):
                assert shape_of(result) == (match[1] or match[2]), change["what"]
            proposed += 1
    assert proposed > 0
