"""Recurrent layers: what cuDNN's take, beside 240 cases measured by scripts/plan_accuracy/rnn_cases.py on an H200, to the byte."""

import gzip
import json
from types import SimpleNamespace

import pytest

from common import ROOT

torch = pytest.importorskip("torch")

KINDS = {"rnn": 1, "lstm": 2, "gru": 3}
RECORDED = json.loads(gzip.decompress((ROOT / "tests/fixtures/plan/recurrent.json.gz").read_bytes()))["cases"]


def sizes_by_step(case) -> list:
    """How many entries are still there at each time step, as a packed sequence tells it."""
    batch, longest = case["batch"], case["longest"]
    lengths = {
        "equal": [longest] * batch,
        "one shorter": [longest] * (batch - 1) + [longest // 2],
        "two kinds": [longest] * (batch // 2) + [longest // 2] * (batch - batch // 2),
        "all different": [max(1, longest - i) for i in range(batch)],
        "in fours": [max(1, longest - 4 * (i // 4)) for i in range(batch)],
    }[case["pattern"]]
    return [sum(length > step for length in lengths) for step in range(longest)]


def net(case, train):
    from faultline.plan.torch.kernels.recurrent import _net as Net

    packed = case["packed"]
    shape = (case["positions"],) if packed else (case["longest"], case["batch"])
    given = {
        "input": torch.empty(*shape, case["width"], dtype=getattr(torch, case["dtype"]), device="meta"),
        "mode": KINDS[case["kind"]],
        "hidden_size": case["hidden"],
        "num_layers": case["layers"],
        "bidirectional": case["both"],
        "dropout": case["dropout"],
        "train": train,
        "batch_sizes": sizes_by_step(case) if packed else [],
    }
    return Net(SimpleNamespace(get=lambda name, default=None: given.get(name, default)))


def test_reserve_and_workspace_are_those_of_the_gpu():
    assert len(RECORDED) == 240 and {case["kind"] for case in RECORDED} == set(KINDS)
    wrong = []
    for case in RECORDED:
        training, inference = net(case, True), net(case, False)
        *_, workspace, reserve = case["forward"]
        planned = (training.reserve_bytes(), training.workspace_bytes(), inference.workspace_bytes())
        if planned != (reserve, workspace, case["inference"][-1]) or inference.reserve_bytes() != 0:
            wrong.append((case["kind"], case["pattern"], case["packed"], planned, case["forward"], case["inference"]))
    assert wrong == []
