"""What numbers are called is one table in two languages, and what follows from a name follows from it alone."""

import re

import pytest
from common import ROOT

from faultline.plan.source import names

TABLE = (ROOT / "src/plan/number_names.cpp").read_text()


def listed(name: str) -> tuple:
    return tuple(re.findall(r'"(\w+)"', re.search(rf"constexpr auto {name} = (.*?);", TABLE, re.S)[1]))


def test_both_languages_have_the_same_names():
    assert listed("kBatch") == names.BATCH and listed("kServed") == names.SERVED
    assert listed("kLength") == names.LENGTH and listed("kGenerated") == names.GENERATED


def test_a_name_means_one_thing():
    assert len(set(names.ALL)) == len(names.ALL) and all(name == name.lower() for name in names.ALL)


TRAINS = """
import torch
{}
net = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(net.parameters())
for _ in range(2):
    net(torch.randn({}, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    "line, name, is_batch",
    [("MINIBATCH_SIZE = 64", "minibatch_size", True), ("eval_batch_size = 64", "eval_batch_size", False)],
)
def test_a_batch_of_inference_is_seen_and_is_no_batch_of_training(dry_run, line, name, is_batch):
    ran = dry_run(TRAINS.format(line, line.partition(" ")[0]))
    assert [number["name"] for number in ran.summary["numbers"]] == [name]
    assert any(offer["name"] == "batch" for offer in ran.summary["offers"]) == is_batch
