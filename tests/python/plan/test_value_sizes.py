"""Results of which values decide the size: bounded by what the program does next, and told as an interval that truth lies in."""

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")
ROWS, WIDTH, ROW = 20_000, 4096, 4 * 4096
HEAD = f"""
import torch
features = torch.randn({ROWS}, {WIDTH}, device="cuda")
scores = features.mean(1)
"""
# what follows; rows of features that it makes at the peak beside them: at least, and at most
CASES = {
    "a mask": ("kept = features[scores > 0]", 0, ROWS),
    "what is made of it": ("kept = features[scores > 0]\nmore = kept * 2\nthird = torch.relu(more)", 0, 3 * ROWS),
    "nonzero": ("kept = features[torch.where(scores > 0)[0]]", 0, ROWS),
    "the first of them": ("kept = features[torch.where(scores > 0)[0][:100]]", 0, 100),
    "the best": ("kept = features[scores.topk(100).indices]", 100, 100),
    "a sample of two kinds": (
        "labels = (scores > 0).long()\nmasks = []\n"
        "for kind, count in ((0, 300), (1, 100)):\n"
        "    places = torch.where(labels == kind)[0]\n"
        "    places = places[torch.randperm(places.numel(), device='cuda')[:count]]\n"
        "    mask = torch.zeros_like(labels, dtype=torch.uint8)\n    mask[places] = 1\n    masks.append(mask)\n"
        "kept = features[torch.where(masks[0] | masks[1])[0]]",
        0,
        400,
    ),
    "joined with what is sure": ("kept = torch.cat([features[scores > 0], features[:50]])", 50, 2 * ROWS + 50),
}


@pytest.mark.parametrize("case", CASES)
def test_the_peak_lies_between_the_rows_that_may_be(binary, tmp_path, case):
    program, least, most = CASES[case]
    (tmp_path / "train.py").write_text(HEAD + program + "\n")
    done = subprocess.run(
        [binary, "plan", "--gpu", "H200", "--no-try", "-o", "run", "--", sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    plan = json.loads((tmp_path / "run" / "report.json").read_text())["plan"]
    assert plan["verdict"] == "fits", done.stderr
    base, small = ROWS * ROW, 8 << 20
    ends = [plan["peak"][f"allocated_{end}"] or plan["peak"]["allocated"] for end in ("least", "most")]
    assert base + least * ROW <= ends[0] + small and ends[0] <= base + least * ROW + small
    assert abs(ends[1] - base - most * ROW) <= small
    assert ("size depends on values" in " ".join(done.stderr.split())) == (most > 1000)
