"""Programs with and without leaks (tests/corpus/leaks), judged with and without the marks of their steps, and as a recording that began in the middle.

A program says what it is: `# clean` or `# leak` in its first line, with `# <- kept` behind each line that makes what stays. Without marks a leak may become a note, at its line;
what is clean gets a note at most. scripts/device/leak_corpus.py runs the same programs on a GPU, and judges in the same way.
"""

import json
import re
import sys

import pytest

from common import ROOT

sys.path.insert(0, str(ROOT / "scripts/device"))
import leak_corpus  # noqa: E402

pytest.importorskip("torch")
PROGRAMS = leak_corpus.programs([])
# Told as a leak by mistake where the recording began in the middle: what tells them apart, the weights' shapes and the first rounds, is not in it.
ALARMS_OF_THE_REST = ("functional_layers_stacked_weights", "generate_kv_list")


def leaks(report):
    return [
        finding
        for finding in json.loads(report)["findings"]
        if finding["rule"] == "memory/leak" and finding["severity"] != "note"
    ]


def began_in_the_middle(text):
    """Half of the events are gone; what they left is there without a stack, as in a history that keeps its last entries only."""
    lines = [
        line for line in text.split("\n") if not line.startswith(("tensor-note ", "op-begin ", "op-end ", "estimate "))
    ]
    events = [number for number, line in enumerate(lines) if re.match(r"(alloc|free|step) ", line)]
    gone, there = set(events[: len(events) // 2]), {}
    for number in sorted(gone):
        word = re.match(r"(alloc|free) (#\d+)", lines[number])
        if word and word[1] == "alloc":
            there[word[2]] = re.sub(r" (stack|tensor|t)=\S+", "", lines[number]) + " preexisting"
        elif word:
            there.pop(word[2], None)
    kept = [line for number, line in enumerate(lines) if number not in gone]
    begin = next((number for number, line in enumerate(kept) if re.match(r"(alloc|free|step) ", line)), len(kept))
    text = "\n".join(kept[:begin] + list(there.values()) + kept[begin:])
    return (
        re.sub(r"^(alloc|free) #", r"\1 #a", text, flags=re.M)
        .replace(" exact", "", 1)
        .replace(" complete-from-start", "", 1)
    )


def test_the_corpus_is_large_enough():
    kinds = [leak_corpus.truth_of(path)[0] for path in PROGRAMS.values()]
    assert kinds.count(False) >= 80 and kinds.count(True) >= 40
    assert all(path.read_text().split("\n")[0] in ("# clean", "# leak") for path in PROGRAMS.values())
    assert all(bool(kept) == leaky for leaky, kept in map(leak_corpus.truth_of, PROGRAMS.values()))


@pytest.mark.parametrize("name", PROGRAMS)
def test_leaks_and_only_leaks_are_told(dry_run, binary, tmp_path, name):
    truth = leak_corpus.truth_of(PROGRAMS[name])
    ran = dry_run(PROGRAMS[name])
    assert ran.status == 0, ran.err
    trace = ran.traces[0].rename(tmp_path / "whole.faultline")
    marked = leak_corpus.explained(binary, trace)
    bare = leak_corpus.explained(binary, leak_corpus.without_marks(binary, trace))
    assert leak_corpus.verdict(marked, truth, True)[1] == ""
    assert leak_corpus.verdict(bare, truth, False)[1] == ""
    late = tmp_path / "late.txt"
    late.write_text(began_in_the_middle(leak_corpus.explained(binary, trace, "text-trace")))
    told_late = leaks(leak_corpus.explained(binary, late))
    is_right = leak_corpus.places(told_late) <= truth[1]
    assert is_right != name.removesuffix(".py").endswith(ALARMS_OF_THE_REST), [one["message"] for one in told_late]
    for finding in [*leaks(marked), *leaks(bare), *told_late]:
        if finding["confidence"] != "proved":
            continue
        said = finding["evidence"]
        assert re.search("optimizer|backward", said["steps_counted_by"])
        assert said["least_kept_of_a_step_bytes"] > 0 and said["steps_after_warm_up"] >= 18
        assert said["steps_after_warm_up"] * said["least_kept_of_a_step_bytes"] <= min(
            said["use_rose_in_them_by_bytes"], said["kept_bytes"]
        )
