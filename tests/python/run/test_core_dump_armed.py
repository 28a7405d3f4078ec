"""The GPU core dump: armed only where it is asked for, and then so that the driver ends the program at the fault; a second run only after a fault.

The virtual driver stands in for the machine's own, found where a real one would be. It writes no dumps, so the programs here leave the one that a real
driver wrote, where and when that would."""

import json
import lzma
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from common import FAULTLINE, ROOT

BUILD = Path(FAULTLINE).parent
DUMP = ROOT / "tests" / "fixtures" / "coredump" / "triton_oob.core.xz"
OWN = ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_COREDUMP_FILE", "CUDA_COREDUMP_GENERATION_FLAGS")


@pytest.fixture
def machine(tmp_path):
    """The environment of a machine with a driver."""
    library = tmp_path / "driver"
    library.mkdir()
    (library / "libcuda.so.1").symlink_to(BUILD / "vgpu" / "libfaultline_vgpu.so")
    return {**{name: value for name, value in os.environ.items() if name not in OWN}, "LD_LIBRARY_PATH": str(library)}


def run(folder, machine, *options, command, **how):
    return subprocess.run(
        [FAULTLINE, "run", "-o", str(folder), *options, "--", *command],
        capture_output=True,
        text=True,
        timeout=600,
        env=machine,
        **how,
    )


def armed(folder, machine, *options):
    done = run(folder, machine, *options, command=["sh", "-c", "env | grep ^CUDA_ | sort"])
    return dict(line.split("=", 1) for line in done.stdout.splitlines()), done.stderr


def test_by_default_nothing_is_armed(tmp_path, machine):
    assert armed(tmp_path / "run", machine)[0] == {}


def test_asked_for_the_dump_ends_the_program_and_lies_in_the_folder(tmp_path, machine):
    variables, err = armed(tmp_path / "run", machine, "--core-dump")
    assert variables["CUDA_ENABLE_COREDUMP_ON_EXCEPTION"] == "1"
    assert variables["CUDA_COREDUMP_FILE"] == str(tmp_path / "run" / "core-%p")
    assert (
        "skip_abort" not in variables["CUDA_COREDUMP_GENERATION_FLAGS"]
        and "skip_global_memory" in variables["CUDA_COREDUMP_GENERATION_FLAGS"]
    )
    assert "the driver ends the program there, or a moment later (SIGABRT)" in err.splitlines()[0]


@pytest.mark.parametrize(
    "name, value", [("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "0"), ("CUDA_COREDUMP_FILE", "/tmp/mine")]
)
def test_what_the_user_has_set_is_left(tmp_path, machine, name, value):
    variables, err = armed(tmp_path / "run", {**machine, name: value}, "--core-dump")
    assert variables == {name: value}
    assert f"{name} is set already" in err


def test_flags_of_the_users_are_kept_and_what_they_mean_is_said(tmp_path, machine):
    variables, err = armed(tmp_path / "run", {**machine, "CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort"}, "--core-dump")
    assert variables["CUDA_COREDUMP_GENERATION_FLAGS"] == "skip_abort"
    assert "results may be wrong" in err


# As a real driver does: with the dump armed the program is ended at the fault, its dump left where it was told.
FAULTS = """
cat > "$1-read-$CUDA_ENABLE_COREDUMP_ON_EXCEPTION"
echo out; echo err >&2
if [ -n "$CUDA_COREDUMP_FILE" ]; then cp "$2" "$(echo "$CUDA_COREDUMP_FILE" | sed "s/%p/$$/")"; kill -ABRT $$; fi
exec "$3"
"""


def faulting(tmp_path, program="graph_after_free"):
    dump = tmp_path / "dump"
    dump.write_bytes(lzma.decompress(DUMP.read_bytes()))
    return ["sh", "-c", FAULTS, "sh", str(tmp_path / "input"), str(dump), str(BUILD / "programs" / program)]


def test_again_names_the_line_from_the_second_run_and_keeps_the_firsts_output_and_status(tmp_path, machine):
    (tmp_path / "given").write_text("given to both")
    with open(tmp_path / "given") as given:
        done = run(tmp_path / "run", machine, "--again", command=faulting(tmp_path), stdin=given)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "out\n"
    assert done.stderr.count("err\n") == 1
    assert "run once more, for real" in done.stderr
    assert (tmp_path / "run" / "again" / "log.txt").read_text() == "out\nerr\n"
    assert (tmp_path / "input-read-").read_text() == (tmp_path / "input-read-1").read_text() == "given to both"
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    finding = next(finding for finding in report["findings"] if finding["rule"] == "access/illegal-address")
    assert "from a second run" in finding["message"] and finding["confidence"] == "likely"
    assert finding["location"]["file"].endswith("oob.py")
    assert any(item["role"] == "noticed" for item in finding["related"])
    again = subprocess.run(
        [FAULTLINE, "explain", str(tmp_path / "run"), "--format", "json"], capture_output=True, text=True, timeout=600
    )
    assert json.loads(again.stdout)["findings"] == report["findings"]


def test_again_says_that_a_pipe_cannot_be_read_twice(tmp_path, machine):
    done = run(tmp_path / "run", machine, "--again", command=faulting(tmp_path), input="only once")
    assert done.returncode == 7
    assert "standard input is no plain file" in done.stderr
    assert (tmp_path / "input-read-").read_text() == "only once"
    assert (tmp_path / "input-read-1").read_text() == ""


def test_again_does_nothing_after_a_run_without_a_fault(tmp_path, machine):
    done = run(tmp_path / "run", machine, "--again", command=faulting(tmp_path, "all_well"), stdin=subprocess.DEVNULL)
    assert done.returncode == 0
    assert not (tmp_path / "run" / "again").exists()
    assert "once more" not in done.stderr


def test_a_second_run_that_goes_well_is_said(tmp_path, machine):
    program = f'if [ -n "$CUDA_COREDUMP_FILE" ]; then exit 0; fi; exec {shlex.quote(str(BUILD / "programs" / "graph_after_free"))}'
    done = run(tmp_path / "run", machine, "--again", command=["sh", "-c", program], stdin=subprocess.DEVNULL)
    assert done.returncode == 7
    finding = next(
        finding
        for finding in json.loads((tmp_path / "run" / "report.json").read_text())["findings"]
        if finding["rule"] == "access/illegal-address"
    )
    assert any("left no GPU core dump" in attempt["what"] for attempt in finding["tries"])


def test_a_dump_tells_all_though_the_driver_ended_the_program(tmp_path, machine):
    done = run(tmp_path / "run", machine, "--core-dump", command=faulting(tmp_path), stdin=subprocess.DEVNULL)
    assert done.returncode == -signal.SIGABRT
    finding = json.loads((tmp_path / "run" / "report.json").read_text())["findings"][0]
    assert finding["rule"] == "access/illegal-address" and finding["confidence"] == "proved"
    assert "second run" not in finding["message"]


def test_without_a_dump_the_next_step_is_offered(tmp_path, machine):
    done = run(tmp_path / "run", machine, command=[str(BUILD / "programs" / "graph_after_free")])
    assert done.returncode == 7
    finding = next(
        finding
        for finding in json.loads((tmp_path / "run" / "report.json").read_text())["findings"]
        if finding["rule"] == "access/illegal-address"
    )
    assert any("--core-dump" in attempt["what"] and "--again" in attempt["what"] for attempt in finding["tries"])


def test_both_ways_at_once_are_refused(tmp_path, machine):
    done = run(tmp_path / "run", machine, "--core-dump", "--again", command=["true"])
    assert done.returncode == 2 and "--core-dump excludes --again" in done.stderr and not (tmp_path / "run").exists()


def test_the_virtual_gpu_says_that_it_writes_no_dump(tmp_path):
    done = subprocess.run(
        [FAULTLINE, "run", "--gpu", "virtual", "--core-dump", "-o", str(tmp_path / "run"), "--", "true"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0
    assert "the virtual GPU writes none" in done.stderr
