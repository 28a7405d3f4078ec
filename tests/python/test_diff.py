"""faultline diff: what grew between two runs, by line."""

import json
import subprocess

import pytest

from common import FAULTLINE, RECORDINGS, ROOT, refusal, write

HEAD = "faultline-trace-text 1\ndevice 0\nheap driver\nheap torch below=driver\n"


def faultline(*arguments, **more):
    return subprocess.run([FAULTLINE, *map(str, arguments)], capture_output=True, cwd=ROOT, **more)


def diff(*arguments):
    done = faultline("diff", "--format", "json", *arguments)
    return json.loads(done.stdout), done.returncode


def trace(path, lines):
    return write(path, HEAD + "\n".join(lines) + "\n")


def test_the_line_that_grew_is_first_and_its_clean_twin_is_silent(tmp_path):
    base = ["alloc #w 64MiB @0x1000000 at train.py:3 build", "alloc #x 8MiB @0x10000000 at train.py:9 step"]
    before = trace(tmp_path / "before.txt", base)
    after = trace(
        tmp_path / "after.txt",
        [base[0], base[1].replace("8MiB", "24MiB"), "alloc #y 2MiB @0x20000000 at train.py:11 step"],
    )
    change, status = diff(before, after)
    (device,) = change["devices"]
    assert status == 1 and change["grew"]
    assert device["allocated"] == {"before": 72 << 20, "after": 90 << 20, "change": 18 << 20}
    assert [(line["location"]["line"], line["fate"], line["change"]) for line in device["lines"]] == [
        (9, "same", 16 << 20),
        (11, "new", 2 << 20),
    ]
    assert device["equal_lines"] == 1

    change, status = diff(after, before)
    assert status == 0 and [line["fate"] for line in change["devices"][0]["lines"]] == ["gone", "same"]
    change, status = diff(before, before)
    assert status == 0 and change["devices"][0]["lines"] == [] and change["devices"][0]["equal_lines"] == 2


def test_lines_that_moved_are_followed(tmp_path):
    def run(name, first, size):
        lines = [
            f"alloc #w 64MiB @0x1000000 at train.py:{first} build",
            f"alloc #x {size} @0x10000000 at train.py:{first + 4} step",
        ]
        return trace(tmp_path / name, lines)

    change, status = diff(run("a", 3, "8MiB"), run("b", 13, "9MiB"))
    (line,) = change["devices"][0]["lines"]
    assert (line["fate"], line["line_before"], line["location"]["line"], line["change"]) == ("moved", 7, 17, 1 << 20)
    assert status == 1


@pytest.mark.parametrize("name", ["gpt_oom", "hf_gpt2_train", "frag"])
def test_a_report_is_as_good_as_its_recording(tmp_path, name):
    recording = RECORDINGS / f"{name}.pickle.xz"
    report = write(tmp_path / "report.json", faultline("explain", "--format", "json", recording).stdout)
    change, status = diff(report, recording)
    assert status == 0 and not change["grew"]
    assert all(not device["lines"] and not device["categories"] for device in change["devices"])
    assert change["findings"]["new"] == change["findings"]["gone"] == []
    assert faultline("diff", report, "-", stdin=recording.open("rb")).returncode == 0


def test_the_rows_add_up():
    change, status = diff(RECORDINGS / "gpt.pickle.xz", RECORDINGS / "gpt_oom.pickle.xz")
    (device,) = change["devices"]
    assert status == 1
    for rows in (device["lines"], device["categories"]):
        assert sum(row["change"] for row in rows) == device["allocated"]["change"]
        assert [row["change"] for row in rows] == sorted((row["change"] for row in rows), reverse=True)
    assert [finding["rule"] for finding in change["findings"]["new"]] == ["memory/out-of-memory"]


def test_a_finding_that_is_new_counts_also_where_the_peak_is_lower():
    leaks, clean = RECORDINGS / "eval_keeps_graph.pickle.xz", RECORDINGS / "eval_no_grad_clean.pickle.xz"
    change, status = diff(clean, leaks)
    assert status == 1 and [finding["rule"] for finding in change["findings"]["new"]] == ["memory/leak"]
    change, status = diff(leaks, clean)
    assert status == 0 and [finding["rule"] for finding in change["findings"]["gone"]] == ["memory/leak"]


def test_what_has_no_stacks_is_said():
    change, status = diff(RECORDINGS / "gpt.pickle.xz", RECORDINGS / "no_context.pickle.xz")
    assert change["devices"][0]["lines"] == []
    assert any(note.startswith("After: ") and "without call stacks" in note for note in change["notes"])


def test_people_read_the_same(tmp_path):
    pair = RECORDINGS / "gpt.pickle.xz", RECORDINGS / "gpt_oom.pickle.xz"
    page = faultline("diff", *pair).stdout.decode()
    assert "SUMMARY: GPU 0: peak 4.63 GiB (+1.91 GiB)" in page and "work_models.py:15" in page
    assert max(map(len, page.splitlines())) <= 80
    markdown = faultline("diff", "--format", "markdown", *pair).stdout.decode()
    assert markdown.startswith("### Faultline: GPU 0: peak 4.63 GiB (+1.91 GiB)")
    assert "| +744.88 MiB | 53.15 MiB | 798.03 MiB | `/home/user/project/work_models.py:15 in forward`" in markdown
    assert faultline("diff", "-v", *pair).stdout.count(b"\n") > page.count("\n")


def test_what_cannot_be_compared_is_refused(tmp_path):
    recording = RECORDINGS / "gpt.pickle.xz"
    message = write(tmp_path / "log.txt", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    assert "holds no GPU memory that was measured" in refusal(faultline("diff", recording, message))
    assert "no such file" in refusal(faultline("diff", tmp_path / "none", recording))
    assert "not both" in refusal(faultline("diff", "-", "-"))
    assert "AFTER is required" in refusal(faultline("diff", recording))
