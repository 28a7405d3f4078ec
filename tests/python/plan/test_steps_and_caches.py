"""What a step is where several optimizers take turns, and the cache of keys and values: that it is known as one, and what it takes in half precision."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

NETS = """import torch
a, b = torch.nn.Linear(64, 64).cuda(), torch.nn.Linear(64, 64).cuda()
oa, ob = torch.optim.Adam(a.parameters()), torch.optim.SGD(b.parameters(), 0.1)
def step(net, o):
    o.zero_grad(); net(torch.ones(2, 64, device="cuda")).sum().backward(); o.step()
"""
# code, steps, optimizers, steps of the one that makes most and least
STEPS = {
    "gan": ("for i in range(6):\n    step(a, oa); step(b, ob)", 6, 2, 6, 6),
    "one": ("for i in range(6):\n    step(a, oa)", 6, 1, 6, 6),
    "every_third": ("for i in range(6):\n    step(a, oa)\n    if i % 3 == 0: step(b, ob)", 6, 2, 6, 2),
    "one_after_the_other": ("for i in range(4):\n    step(a, oa)\nfor i in range(4):\n    step(b, ob)", 7, 2, 4, 4),
    "made_anew": ("for i in range(5):\n    step(a, torch.optim.SGD(a.parameters(), 0.1))", 5, 1, 5, 5),
    "each_parameter": (
        "os = [torch.optim.SGD([p], 0.1) for n in (a, b) for p in n.parameters()]\nfor i in range(5):\n    (a(torch.ones(2, 64, device='cuda')) + b(torch.ones(2, 64, device='cuda'))).sum().backward()\n    for o in os:\n        o.step(); o.zero_grad()",
        5,
        4,
        5,
        5,
    ),
}


@pytest.mark.parametrize(("code", "steps", "optimizers", "most", "least"), STEPS.values(), ids=STEPS)
def test_a_round_of_all_optimizers_is_a_step(dry_run, code, steps, optimizers, most, least):
    summary = dry_run(NETS + code).summary
    assert (summary["steps"], summary["optimizers"]) == (steps, optimizers)
    assert (summary["most_turns"], summary["least_turns"]) == (most, least)


MODEL = """import torch, torch.nn as nn, torch.nn.functional as F
class Attention(nn.Module):
    def __init__(s, dtype=None):
        super().__init__(); s.qkv = nn.Linear(256, 768); s.k = s.v = None
        s.k_cache = torch.zeros(4, 4, 512, 64, device="cuda", dtype=dtype); s.v_cache = torch.zeros(4, 4, 512, 64, device="cuda", dtype=dtype)
    def forward(s, x, at):
        q, k, v = (y.view(4, -1, 4, 64).transpose(1, 2) for y in s.qkv(x).chunk(3, -1))
        k, v = s.KEEP(k, v, at)
        return F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype)).transpose(1, 2).reshape(4, -1, 256)
    def grown(s, k, v, at):
        s.k_cache = s.v_cache = None
        s.k, s.v = (k, v) if s.k is None else (torch.cat([s.k, k], 2), torch.cat([s.v, v], 2))
        return s.k, s.v
    def written(s, k, v, at):
        s.k_cache[:, :, at : at + k.size(2)] = k
        s.v_cache[:, :, at : at + k.size(2)] = v
        return s.k_cache[:, :, : at + k.size(2)], s.v_cache[:, :, : at + k.size(2)]
    def none(s, k, v, at):
        s.k_cache = s.v_cache = None
        return k, v
net = Attention(DTYPE).cuda().eval()
with torch.no_grad():
    x, at = torch.zeros(4, 100, 256, device="cuda"), 0
    for i in range(5):
        net(x, at); at += x.size(1)
"""


@pytest.mark.parametrize(
    ("keep", "dtype", "offered"),
    [("grown", "None", True), ("written", "None", True), ("written", "torch.float16", False), ("none", "None", False)],
)
def test_a_cache_in_float32_is_offered_in_half_precision(dry_run, binary, tmp_path_factory, keep, dtype, offered):
    from dry import dry_run as run

    program = tmp_path_factory.mktemp("program") / "program.py"  # the places that are halved are in its file
    program.write_text(MODEL.replace("KEEP", keep).replace("DTYPE", dtype))
    ran = dry_run(program)
    offers = [offer for offer in ran.summary["offers"] if offer["name"] == "kv_cache"]
    assert bool(offers) == offered, json.dumps(ran.summary["offers"])
    if not offered:
        return
    again = run(binary, tmp_path_factory.mktemp("again"), program, changes={"kv_cache": offers[0]["value"]})
    assert "kv_cache" in again.summary["changes"]
    token_bytes = 2 * 4 * 4 * 64 * 4
    tokens = 512 if keep == "written" else 500 + 400  # what is joined is there beside what it is joined to
    saved = ran.summary["peak_allocated"] - again.summary["peak_allocated"]
    assert abs(saved - tokens * token_bytes / 2) <= 0.02 * tokens * token_bytes
    elsewhere = run(binary, tmp_path_factory.mktemp("none"), program, changes={"kv_cache": "float16@/none.py:1#7"})
    assert "kv_cache" not in elsewhere.summary["changes"]
    assert elsewhere.summary["peak_allocated"] == ran.summary["peak_allocated"]


LISTS = """import torch
from torch import nn
class Attention(nn.Module):
    def __init__(s):
        super().__init__(); s.k, s.keys = nn.Linear(256, 256), []
        s.token, s.table = nn.Parameter(torch.zeros(4, 1, 256)), torch.zeros(4, 1, 256, device="cuda")
    def forward(s, x):
        k = s.k(x)
        s.keys.append(k)
        return JOINED.sum()
net = Attention().cuda().eval()
with torch.no_grad():
    for i in range(20):
        net(torch.zeros(4, 100, 256, device="cuda"))
"""


@pytest.mark.parametrize(("joined", "calls"), [("s.keys", 20), ("[s.token, k]", 0), ("[k, s.table]", 0)])
def test_a_list_that_every_call_joins_anew_is_a_cache(binary, tmp_path, joined, calls):
    (tmp_path / "train.py").write_text(LISTS.replace("JOINED", f"torch.cat({joined}, 1)"))
    asked = [binary, "plan", "--gpu", "T4", "--no-try", "--format", "json", "--", sys.executable, "train.py"]
    report = json.loads(subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path).stdout)
    kept = sum(module["bytes"] for module in report["plan"]["modules"] if module["path"] == "(KV cache)")
    assert kept == max(0, calls - 1) * 4 * 100 * 256 * 4, report["plan"]["modules"]


LOOP = """import torch
features = torch.nn.Conv2d(8, 8, 1).cuda().eval()
class Dense(torch.nn.Module):
    def forward(s, x):
        for i in range(3):
            x = torch.cat([x, features(x[:, :8])], 1)
        return x
net = Dense()
with torch.no_grad():
    for i in range(4):
        net(torch.zeros(1, 8, 4, 4, device="cuda"))
"""


def test_tensors_that_are_joined_within_one_call_are_no_cache(dry_run):
    assert [offer["name"] for offer in dry_run(LOOP).summary["offers"] if offer["name"] == "kv_cache"] == []
