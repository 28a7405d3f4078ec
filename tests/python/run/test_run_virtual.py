"""`faultline run --gpu virtual` on programs that use the driver interface: the whole path, from the call to the line in the report, without a GPU."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from common import FAULTLINE, PROGRAMS

SOURCES = Path(__file__).resolve().parents[2] / "programs"


def run(tmp_path, program, *arguments, gpu="virtual:1GiB", options=(), environment=None):
    folder = tmp_path / "run"
    command = [FAULTLINE, "run", "--gpu", gpu, "-o", str(folder), *options, "--", str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else None
    return done, report, folder


def line_of(program, text="the bug"):
    for number, line in enumerate((SOURCES / f"{program}.cpp").read_text().splitlines(), 1):
        if text in line:
            return number
    raise AssertionError(f"{program} has no line with '{text}'")


def findings(report, rule):
    return [finding for finding in report["findings"] if finding["rule"] == rule]


def only_finding(report, rule):
    found = findings(report, rule)
    assert len(found) == 1, report["findings"]
    return found[0]


def text_of(folder):
    """The one trace of a run, in the text form."""
    (trace,) = folder.glob("process-*.faultline")
    return subprocess.run(
        [FAULTLINE, "explain", str(trace), "--format", "text-trace"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("threads", [[], ["many"]])
def test_a_clean_program_gives_no_finding_and_its_own_status(tmp_path, threads):
    done, report, folder = run(tmp_path, "all_well", *threads)
    assert done.returncode == 0, done.stderr
    assert [finding for finding in report["findings"] if finding["severity"] != "note"] == []
    assert report["input"]["events"] > 50


def test_a_double_free_names_both_lines(tmp_path):
    done, report, _ = run(tmp_path, "double_free")
    assert done.returncode == 0, done.stderr
    finding = only_finding(report, "api/bad-free")
    assert finding["location"]["file"].endswith("double_free.cpp")
    assert finding["location"]["line"] == line_of("double_free")
    assert finding["freed_at"]["line"] == line_of("double_free", "CHECK(cuMemFree(pointer))")


def test_a_free_inside_an_allocation_names_the_allocation(tmp_path):
    _, report, _ = run(tmp_path, "interior_free")
    finding = only_finding(report, "api/bad-free")
    assert finding["location"]["line"] == line_of("interior_free")
    assert finding["message"].endswith("byte 4,096 of an allocation of 1.00 MiB."), finding
    assert finding["allocated_at"]["function"].startswith("take")


def test_a_copy_that_overruns_says_by_how_much(tmp_path):
    _, report, _ = run(tmp_path, "copy_overrun")
    finding = only_finding(report, "api/bad-copy")
    assert finding["location"]["line"] == line_of("copy_overrun")
    assert finding["evidence"]["too_many_bytes"] == 4096, finding


@pytest.mark.parametrize("room, too_many", [(1000, 380), (1379, 1), (1380, 0), (4096, 0)])
def test_a_box_with_padded_layers_is_recorded_to_its_last_byte(tmp_path, room, too_many):
    done, report, _ = run(tmp_path, "box_overrun", str(room))
    assert done.returncode == 0, done.stderr
    if too_many == 0:
        assert report["findings"] == []
    else:
        assert only_finding(report, "api/bad-copy")["evidence"]["too_many_bytes"] == too_many


def test_memory_that_a_loop_never_frees_is_a_leak_at_exit(tmp_path):
    _, report, _ = run(tmp_path, "leak_at_exit")
    finding = only_finding(report, "memory/leak")
    assert finding["location"]["file"].endswith("leak_at_exit.cpp")
    assert finding["location"]["line"] == line_of("leak_at_exit")
    assert finding["bytes"] == 20 << 20


def test_a_full_device_is_an_out_of_memory_with_its_line(tmp_path):
    done, report, _ = run(tmp_path, "full_device")
    assert done.returncode == 7, done.stderr
    finding = only_finding(report, "memory/out-of-memory")
    assert finding["location"]["line"] == line_of("full_device")
    assert finding["cause"] == "exhausted"
    account = report["devices"][0]["account"]
    assert account["capacity"] == 1 << 30
    assert (
        sum(account["live"].values())
        + account["cached"]
        + account["outside_framework"]
        + account["free"]
        + account["unknown"]
        == account["capacity"]
    )


def test_an_error_of_the_device_is_told_once_with_the_line_that_met_it(tmp_path):
    done, report, _ = run(tmp_path, "graph_after_free")
    assert done.returncode == 7, done.stderr
    finding = only_finding(report, "access/illegal-address")
    assert finding["location"]["line"] == line_of("graph_after_free")


def test_functions_found_at_run_time_are_recorded_in_the_variant_asked_for(tmp_path):
    done, report, folder = run(tmp_path, "found_at_run_time")
    assert done.returncode == 0, done.stderr
    assert report["findings"] == []
    # The one copy went to the legacy default stream, the other to the thread's own.
    copies = [line for line in text_of(folder).splitlines() if line.startswith("copy ")]
    assert len(copies) == 2 and sum("stream=" in line for line in copies) == 1, copies


def test_a_child_forked_after_start_fails_as_without_us_and_the_parent_goes_on(tmp_path):
    done, report, folder = run(tmp_path, "forks")
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("process-*.faultline"))) == 2


def test_what_was_recorded_when_the_program_is_killed_is_all_there(tmp_path):
    folder = tmp_path / "run"
    command = [FAULTLINE, "run", "--gpu", "virtual:1GiB", "-o", str(folder), "--", str(PROGRAMS / "killed")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    rounds = 0
    while rounds < 500:
        rounds = int(process.stdout.readline())
    while not list(folder.glob("process-*.faultline")):
        time.sleep(0.01)
    child = int(next(folder.glob("process-*.faultline")).stem.split("-")[1])
    os.kill(child, signal.SIGKILL)
    rest, errors = process.communicate()
    rounds = int((rest.split() or [rounds])[-1])
    assert process.returncode == -signal.SIGKILL, errors
    report = json.loads((folder / "report.json").read_text())
    # Each completed round is one Alloc and one Free; the one under way may have left one more.
    assert report["input"]["events"] >= 2 * rounds
    assert not any("damaged" in name or "missing" in name for name in report["input"]["lost"]), report["input"]["lost"]


def test_a_process_that_ends_while_a_thread_waits_for_the_device_keeps_its_status(tmp_path):
    done, report, _ = run(tmp_path, "ends_while_waiting")
    assert done.returncode == 6, done.stderr
    assert "internal error" not in done.stderr
    assert report["input"]["events"] >= 1


def test_a_process_that_replaces_itself_is_told_twice(tmp_path):
    done, report, folder = run(tmp_path, "replaces_itself")
    assert done.returncode == 0, done.stderr
    assert len(list(folder.glob("process-*.faultline"))) == 2
    assert len(report["input"]["parts"]) == 2 and {device["process"] for device in report["devices"]} == {
        part["name"] for part in report["input"]["parts"]
    }


def test_a_request_to_end_is_handed_on_to_the_program(tmp_path):
    process = subprocess.Popen(
        [
            FAULTLINE,
            "run",
            "--gpu",
            "virtual",
            "-o",
            str(tmp_path / "run"),
            "--",
            "sh",
            "-c",
            "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.1; done",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    out, _ = process.communicate()
    assert process.returncode == 9 and out == "told\n"


def test_nvtx_ranges_reach_the_trace(tmp_path):
    done, report, folder = run(tmp_path, "ranges")
    assert done.returncode == 0, done.stderr
    kinds = [
        line.split()[:2] for line in text_of(folder).splitlines() if line.startswith(("op-begin", "op-end", "alloc"))
    ]
    begin, end = kinds.index(["op-begin", "loading"]), kinds.index(["op-end", "loading"])
    assert [kind for kind, *_ in kinds[begin + 1 : end]] == ["alloc"], kinds  # around its work, and nothing else


def test_a_folder_that_cannot_be_written_does_not_stop_the_program(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual:1GiB", "-o", str(blocked / "run"), "--", str(PROGRAMS / "full_device")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 7
    assert "nothing will be recorded" in done.stderr


def test_a_program_that_is_not_there_is_one_sentence(tmp_path):
    done = subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual", "-o", str(tmp_path / "run"), "--", "./no-such-program"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 127
    assert done.stderr.strip() == "faultline: ./no-such-program was not found."


def test_without_a_driver_the_program_runs_as_it_would(tmp_path):
    done = subprocess.run(
        [FAULTLINE, "run", "-o", str(tmp_path / "run"), "--", "sh", "-c", "echo out; echo err >&2; exit 3"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert done.stdout == "out\n"
    assert "err\n" in done.stderr


def test_an_unknown_virtual_gpu_is_refused(tmp_path):
    done = subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual:X99", "-o", str(tmp_path / "run"), "--", "true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "X99" in done.stderr


def test_a_virtual_gpu_has_the_size_of_the_one_it_plays(tmp_path):
    _, report, _ = run(tmp_path, "all_well", gpu="virtual:T4")
    device = report["devices"][0]
    assert (device["name"], device["account"]["capacity"]) == ("Tesla T4", int(14.56 * 2**30)), (
        device
    )  # as docs/gpus.md has it


def test_explain_tells_the_folder_again(tmp_path):
    _, report, folder = run(tmp_path, "double_free")
    again = subprocess.run([FAULTLINE, "explain", str(folder), "--format", "json"], capture_output=True, text=True)
    assert again.returncode == 1
    assert json.loads(again.stdout)["findings"] == report["findings"]


def test_an_access_that_the_virtual_driver_caught_is_in_the_trace_and_the_report(tmp_path):
    done, report, folder = run(tmp_path, "caught_access")
    assert done.returncode == 0, done.stderr
    finding = only_finding(report, "access/out-of-bounds")
    assert finding["confidence"] == "proved"
    assert finding["message"].startswith("Kernel add wrote 4 bytes outside of its memory, at 0x")
    assert (finding["location"]["file"], finding["location"]["line"]) == ("/home/user/project/add.cu", 7)
    assert finding["memory"] == "Just past the end of an allocation of 16.00 KiB."
    assert finding["allocated_at"]["function"].startswith("take")
    assert list(folder.glob("process-*.faultline"))
