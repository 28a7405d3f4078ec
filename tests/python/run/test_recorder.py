"""The recorder harms nobody: whatever a program does to it, and whatever it runs out of, the program's output and status are its own. No GPU is needed."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from common import FAULTLINE, PROGRAMS


def run(folder, program, *arguments, options=(), **more):
    command = [
        FAULTLINE,
        "run",
        "--gpu",
        "virtual:1GiB",
        "-o",
        str(folder),
        *options,
        "--",
        str(PROGRAMS / program),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, **more)
    report = json.loads((folder / "report.json").read_text()) if (folder / "report.json").exists() else None
    return done, report


def preloadable(folder, library):
    """LD_PRELOAD knows no names with spaces: a link to it that has none."""
    link = folder / "preloaded" / library.name
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(library.resolve())
    return str(link)


def sizes(folder):
    return sum(path.stat().st_size for path in folder.glob("process-*.faultline"))


def not_judged(report):
    return {item["rule"]: item["why"] for item in report["not_judged"]}


def test_a_program_that_closes_every_descriptor_has_its_files_to_itself(tmp_path):
    done, report = run(tmp_path / "run", "closes_everything", str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "mine are mine\n"), done.stderr
    mine = list(tmp_path.glob("mine-*"))
    assert mine and all(path.read_bytes() == b"mine\n" for path in mine)
    assert report["input"]["events"] > 80000 and report["input"]["lost"] == {}


def test_traces_that_are_cut_short_or_removed_meanwhile_do_not_end_the_program(tmp_path):
    done, _ = run(tmp_path / "run", "cuts_traces")
    assert (done.returncode, done.stdout) == (3, "done\n"), done.stderr


@pytest.mark.parametrize(
    "program, and_all_after",
    [
        ("all_well", False),
        ("all_well", True),
        ("ranges", False),
        ("double_free", True),
        ("forks", True),
        ("graph_after_free", False),
    ],
)
def test_no_allocation_that_the_recorder_is_refused_reaches_the_program(tmp_path, program, and_all_after):
    def outcome(number, tells=False):
        environment = {
            **os.environ,
            "LD_PRELOAD": preloadable(tmp_path, PROGRAMS / "libno_memory.so"),
            "FAULTLINE_TEST_FAILS": str(number),
        }
        environment.update(
            {"FAULTLINE_TEST_FAILS_ON": "1"} if and_all_after else {},
            **({"FAULTLINE_TEST_TELLS": "1"} if tells else {}),
        )
        done = subprocess.run(
            [
                FAULTLINE,
                "run",
                "--gpu",
                "virtual:1GiB",
                "--format",
                "json",
                "-o",
                str(tmp_path / f"run-{number}"),
                "--",
                str(PROGRAMS / program),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
        )
        return done

    expected = outcome(-1, tells=True)
    made = int(expected.stderr.split("the recorder made ")[1].split()[0])
    assert made > 20
    # Each of the first hundred, then fewer: what comes late repeats itself.
    numbers = sorted({*range(1, min(made, 100) + 1), *range(100, made + 1, max(1, made // 20))})
    for number in numbers:
        done = outcome(number)
        assert (
            done.returncode == expected.returncode
            and "terminate" not in done.stderr
            and "internal error" not in done.stderr
        ), (number, done.stderr)


def test_a_recording_that_ended_for_want_of_memory_says_so(tmp_path):
    environment = {
        **os.environ,
        "LD_PRELOAD": preloadable(tmp_path, PROGRAMS / "libno_memory.so"),
        "FAULTLINE_TEST_FAILS": "60",
        "FAULTLINE_TEST_FAILS_ON": "1",
    }
    done, report = run(tmp_path / "run", "all_well", env=environment)
    assert done.returncode == 0
    assert "the program's memory ran out" in not_judged(report)["memory/leak"] and "memory ran out" in " ".join(
        done.stderr.split()
    )
    assert [finding for finding in report["findings"] if finding["severity"] != "note"] == []


def test_with_little_address_space_the_program_ends_as_it_would_without_a_recording(tmp_path):
    build = Path(FAULTLINE).resolve().parent
    for limit in (40, 100, 160, 220, 300, 500, 3000):
        command = ["sh", "-c", f"ulimit -v {limit << 10}; exec {shlex.quote(str(PROGRAMS.resolve() / 'leak_at_exit'))}"]
        plain = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=600,
            env={
                **os.environ,
                "LD_PRELOAD": preloadable(tmp_path, build / "capture/libcuda.so.1"),
                "FAULTLINE_DRIVER": str(build / "vgpu/libfaultline_vgpu.so"),
            },
        )
        done = subprocess.run(
            [FAULTLINE, "run", "--gpu", "virtual", "-o", str(tmp_path / f"run-{limit}"), "--", *command],
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), (limit, plain.stderr, done.stderr)


def test_launches_and_copies_go_first_when_little_may_be_kept(tmp_path):
    done, report = run(tmp_path / "run", "many_calls", "400000", "3", options=("--keep", "2MiB"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert sizes(tmp_path / "run") < 3 << 20
    # The allocations at the end are there: memory was recorded throughout.
    assert report["devices"][0]["peak"]["allocated"] >= 3 << 20
    assert (
        report["input"]["lost"].keys() == {"capture.calls_left_out"}
        and 400000 < report["input"]["lost"]["capture.calls_left_out"] < 1200000
    )
    why = not_judged(report)
    assert why.keys() >= {"api/bad-copy", "access/illegal-address"} and "memory/leak" not in why
    assert "may take 2.00 MiB (--keep)" in why["api/bad-copy"] and "may take 2.00 MiB (--keep)" in " ".join(
        done.stderr.split()
    )


def test_when_all_that_may_be_kept_is_there_nothing_is_judged_beyond_it(tmp_path):
    done, report = run(tmp_path / "run", "many_calls", "300000", "1", "allocate", options=("--keep", "1MiB"))
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert sizes(tmp_path / "run") < 2 << 20
    assert "what the process did after its recording ended" in not_judged(report)["memory/leak"]
    assert report["findings"] == []


def test_all_processes_of_a_run_share_what_may_be_kept(tmp_path):
    program = shlex.quote(str(PROGRAMS / "many_calls"))
    done = subprocess.run(
        [
            FAULTLINE,
            "run",
            "--gpu",
            "virtual:1GiB",
            "--keep",
            "3MiB",
            "-o",
            str(tmp_path / "run"),
            "--",
            "sh",
            "-c",
            f"for i in 1 2 3 4; do {program} 200000 & done; wait",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout == "done\n" * 4 and len(list((tmp_path / "run").glob("process-*.faultline"))) == 4
    assert sizes(tmp_path / "run") < 4 << 20


def test_a_size_that_is_none_is_refused(tmp_path):
    done, _ = run(tmp_path / "run", "all_well", options=("--keep", "much"))
    assert done.returncode == 2 and "--keep" in done.stderr


def test_the_program_goes_on_when_faultline_itself_is_killed(tmp_path):
    process = subprocess.Popen(
        [
            FAULTLINE,
            "run",
            "--gpu",
            "virtual:1GiB",
            "-o",
            str(tmp_path / "run"),
            "--",
            str(PROGRAMS / "many_calls"),
            "3000000",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while sizes(tmp_path / "run") < 200000:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.stdout.read() == "done\n" and process.stderr.read() == ""
    process.wait()
    shown = subprocess.run(
        [FAULTLINE, "explain", str(tmp_path / "run"), "--format", "json"], capture_output=True, text=True, timeout=600
    )
    assert json.loads(shown.stdout)["input"]["events"] > 5_000  # 200,000 bytes at some ten each


def test_a_thread_that_is_inside_the_driver_at_the_end_leaves_a_whole_record(tmp_path):
    done, report = run(tmp_path / "run", "ends_while_waiting")
    assert done.returncode == 6 and report["input"]["lost"] == {} and report["input"]["events"] >= 1


def test_a_library_that_starts_with_the_loaders_lock_held_is_not_waited_for(tmp_path):
    done, report = run(tmp_path / "run", "loads_library", str((PROGRAMS / "libslow_start.so").resolve()))
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr
    assert report["findings"] == [] and report["input"]["events"] >= 6


def test_names_without_end_become_unknown_and_are_counted(tmp_path):
    done, report = run(tmp_path / "run", "ranges", "300000")
    assert done.returncode == 0, done.stderr
    assert report["input"]["lost"]["capture.names_left_out"] > 1000
