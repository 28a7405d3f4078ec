"""Programs with and without leaks (tests/corpus/leaks), judged with and without the marks of their steps.

The first line of a program says what it is: `# clean`, or `# leak`, with `# <- kept` behind each line that makes what stays.
Without marks a leak may become a note, at its line; what is clean gets a note at most.
"""
import json
import re
import subprocess

import pytest

from common import ROOT

pytest.importorskip("torch")
PROGRAMS = sorted((ROOT / "tests/corpus/leaks").glob("*.py"))


def leaks(binary, trace):
    done = subprocess.run([binary, "explain", str(trace), "--format", "json"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return [finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == "memory/leak"]


def without_marks(binary, trace, to):
    text = subprocess.run([binary, "explain", str(trace), "--format", "text-trace"], capture_output=True, text=True).stdout
    text = re.sub(r"^step .*\n", "", text, flags=re.M)
    to.write_text(re.sub(r"^(can .*) steps\b", r"\1", text, flags=re.M))
    return to


def lines(findings):
    return {finding["location"]["line"] for finding in findings}


def test_the_corpus_is_large_enough():
    kinds = [path.read_text().split("\n")[0] for path in PROGRAMS]
    assert kinds.count("# clean") >= 40 and kinds.count("# leak") >= 15 and set(kinds) == {"# clean", "# leak"}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_leaks_and_only_leaks_are_told(dry_run, binary, tmp_path, path):
    ran = dry_run(path.read_text())
    assert ran.status == 0, ran.err
    trace = ran.traces[0]
    marked, bare = leaks(binary, trace), leaks(binary, without_marks(binary, trace, tmp_path / "bare.txt"))
    source = path.read_text().split("\n")
    told = [finding for finding in marked if finding["severity"] != "note"]
    told_bare = [finding for finding in bare if finding["severity"] != "note"]
    if source[0] == "# clean":
        assert not told and not told_bare, [finding["message"] for finding in told + told_bare]
        return
    kept = {number for number, text in enumerate(source, 1) if text.endswith("# <- kept")}
    assert lines(told) == kept, [(finding["location"], finding["message"]) for finding in marked]
    assert lines(told_bare) <= kept <= lines(bare), [(finding["location"], finding["message"]) for finding in bare]
    assert not any(finding["confidence"] == "proved" for finding in told_bare if not re.search("optimizer|backward", finding["evidence"]["steps_counted_by"]))
