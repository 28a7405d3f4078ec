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
    is_told = "size depends on values" in " ".join(done.stderr.split())
    assert is_told == (most > 1000) or least != most < 1000  # of a small part it depends on how the sums are rounded


def noted(ran):
    return {note["text"].partition(" ")[0]: note for note in ran.notes() if "()" in note["text"]}


REPEATS = """
    import torch
    x = torch.rand(20_000, 8, device="cuda")
    drawn = torch.randint(0, 50, (100_000,), device="cuda")
    {}
"""


@pytest.mark.parametrize(
    "counts, rows",
    [
        ("drawn", 49 * 100_000),
        ("torch.bincount(x.argmax(1), minlength=8)", 20_000),
        ("torch.bincount(x.argmax(1))", 20_000),
        ("torch.bincount(x.argmax(1), minlength=8).flip(0).clone()[:8].sort().values", None),
        ("torch.nn.functional.one_hot(x.argmax(1), 8).sum(0)", 20_000),
        ("(x > 0.5).sum(1)", 20_000 * 8),
        ("(x * 50).long()[:, 0]", None),
    ],
)
def test_repeats_are_bounded_by_what_the_counts_can_come_to(dry_run, counts, rows):
    ran = dry_run(REPEATS.format(f"counts = {counts}\n    print(*torch.repeat_interleave(counts).shape)"))
    assert ran.status == 0, ran.err
    note = noted(ran)["repeat_interleave()"]
    if rows is None:  # nothing tells: never the most there can be
        assert "with the size of repeat_interleave()" in note["verdict"] and "most" not in note
    else:
        assert ran.out.split()[-1] == str(rows) and note["most"] and "verdict" not in note


@pytest.mark.parametrize(
    "made, bins, word",
    [
        ("torch.bincount(x.argmax(1), minlength=8)", 8, None),
        ("torch.bincount(drawn)", 50, "most"),
        ("torch.bincount(drawn, minlength=20)", 50, "most"),
        ("torch.bincount((x * 50).long().flatten())", 1, "verdict"),
        ("torch.bincount((x * 50).long().flatten(), minlength=50)", 50, ""),
    ],
)
def test_bins_are_bounded_by_what_is_counted(dry_run, made, bins, word):
    ran = dry_run(REPEATS.format(f"print(*{made}.shape)"))
    assert ran.status == 0 and ran.out.split() == [str(bins)], ran.err
    note = noted(ran).get("bincount()")
    assert (note is None) == (word is None)
    assert note is None or {"most", "verdict"} & set(note) == ({word} if word else set())


def test_counts_that_are_known_are_exact(dry_run):
    ran = dry_run("""
        import torch
        counts = torch.bincount(torch.tensor([0, 2, 2], device="cuda"))
        x = torch.rand(3, 2, device="cuda")
        print(counts.tolist(), x.repeat_interleave(counts, 0).shape[0], torch.repeat_interleave(counts, output_size=3).shape[0])
    """)
    assert ran.status == 0 and ran.out.strip() == "[1, 0, 2] 3 3" and not noted(ran), ran.err


def test_a_loop_that_keeps_less_each_round_has_one_note_a_line(dry_run):
    ran = dry_run("""
        import torch
        boxes, order = torch.rand(4000, 4, device="cuda"), torch.rand(4000, device="cuda").argsort()
        kept = []
        while order.numel() > 0 and len(kept) < 50:
            kept.append(order[0])
            order = order[1:]
            near = (boxes[order] - boxes[kept[-1]]).abs().sum(1)
            order = order[near > 0.5]
    """)
    assert ran.status == 0, ran.err
    (note,) = [note for note in ran.notes() if "unknown mask" in note["text"]]
    assert note["most"] and note["count"] > 10
