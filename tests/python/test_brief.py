"""What people see first: the verdict, the line, the cause, the best thing to do, in about a dozen lines; the rest is behind -v."""

import os
import subprocess
import sys

import pytest

from common import FAULTLINE, ROOT

UNASKED = {name: value for name, value in os.environ.items() if name != "FAULTLINE_VERBOSE"}
RECORDINGS = sorted((ROOT / "tests/fixtures/torch").glob("*.pickle.xz"))
GOLDEN = sorted(
    path
    for path in (ROOT / "tests/golden").glob("*/*/*")
    if path.suffix in (".txt", ".log", ".xz", ".json") and path.name != "expect.json"
)


def explained(*words, **more):
    done = subprocess.run(
        [FAULTLINE, "explain", *map(str, words)],
        capture_output=True,
        text=True,
        env={**UNASKED, "COLUMNS": "80", "LC_ALL": "C.UTF-8", **more},
        check=False,
    )
    assert done.returncode in (0, 1, 2, 4), done.stderr
    return done.stdout


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.name.split(".")[0])
def test_a_recording_is_told_in_a_dozen_lines(recording):
    brief, page = explained(recording), explained(recording, "-v")
    lines = brief.splitlines()
    findings = sum(line.startswith(("ERROR", "WARNING")) for line in lines)
    assert findings <= 3 and len(lines) <= 8 + 16 * max(findings, 1), brief
    # it says less, and nothing else: one verdict on both
    assert lines[-1] == page.splitlines()[-1] and lines[-1].startswith("SUMMARY: ")
    assert len(lines) <= len(page.splitlines())


def test_each_length_has_what_the_shorter_one_has_not():
    recording = ROOT / "tests/fixtures/torch/gpt_oom.pickle.xz"
    texts = [explained(recording, *words) for words in ([], ["-v"], ["-vv"])]
    assert [len(text) for text in texts] == sorted(len(text) for text in texts)
    assert "more        -v: " in texts[0] and "held by     1.00 GiB optimizer (snap.py:22)" in texts[0]
    assert "1.89 GiB elsewhere" in texts[1] and " over time\n" in texts[2] and "0 over time\n" not in texts[1]
    assert explained(recording, FAULTLINE_VERBOSE="1") == texts[1]
    assert explained(recording, FAULTLINE_VERBOSE="2") == texts[2]


@pytest.mark.parametrize(("text", "has_row"), [("inside_a_library", True), ("inside_the_own_line", False)])
def test_the_line_of_a_library_stands_below_the_users(text, has_row):
    """And only where the request was made in one."""
    path = ROOT / "tests/fixtures/errors" / f"{text}.txt"
    for words in ([], ["-v"]):
        lines = [line.strip() for line in explained(path, *words).splitlines()]
        where = next(at for at, line in enumerate(lines) if line.startswith("where "))
        inside = [line for line in lines if line.startswith("inside ")]
        assert "tune.py:4" in lines[where] and len(inside) == has_row, lines
        assert not has_row or inside[0].endswith("modeling_llama.py:1190 in forward"), lines


def test_what_was_not_seen_stays(tmp_path):
    """A verdict that holds for a part says so in every length."""
    unseen = 0
    for path in GOLDEN:
        page, brief = explained(path, "-v"), explained(path)
        rows = [
            line[14:].split(". ")[0][:40] for line in page.splitlines() if line.startswith(("  not seen", "  left out"))
        ]
        unseen += len(rows)
        assert all(row in brief for row in rows), (path, brief)
        assert ("(proved)" in brief) == ("(proved)" in page) or "more finding" in brief, path
    assert len(GOLDEN) > 60


def test_the_line_is_shown_with_its_text(tmp_path):
    pytest.importorskip("torch")
    program = tmp_path / "train.py"
    program.write_text(
        "import torch\nmodel = torch.nn.Linear(40000, 40000, device='cuda')\n"
        "loss = model(torch.ones(64, 40000, device='cuda')).sum()  # the loss\nloss.backward()\n"
        "again = [torch.empty(1 << 30, device='cuda') for _ in range(8)]\n"
    )
    done = subprocess.run(
        [FAULTLINE, "plan", "--gpu", "T4", "--no-try", "--", sys.executable, "train.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**UNASKED, "COLUMNS": "80", "LC_ALL": "C.UTF-8"},
        timeout=600,
        check=False,
    )
    told = done.stderr[done.stderr.index("DOES NOT FIT") :]
    assert done.returncode == 1 and "fails at    train.py:5" in told, done.stderr
    assert "                again = [torch.empty(1 << 30, device='cuda')" in told
    assert "at the peak" in told and len(told.splitlines()) <= 18, told
