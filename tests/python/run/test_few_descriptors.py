"""`run` starts the program however few descriptors it may have."""

import resource
import subprocess

import pytest


@pytest.mark.parametrize("count", [4, 5, 6, 7, 8, 12])
def test_the_program_runs(binary, tmp_path, count):
    done = subprocess.run(
        [binary, "run", "--", "/bin/sh", "-c", "echo out; exit 7"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count)),
    )
    assert (done.stdout, done.returncode) == (b"out\n", 7)


@pytest.mark.parametrize("command, status", [("./missing", 127), ("./plain", 126)])
def test_what_cannot_be_started_is_told(binary, tmp_path, command, status):
    (tmp_path / "plain").write_text("text")
    done = subprocess.run(
        [binary, "run", "--", command], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=300
    )
    assert done.returncode == status and command.encode() in done.stderr
