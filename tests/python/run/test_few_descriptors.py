"""`run` and `plan` start the program however few descriptors it may have, and as it would be without: what was closed or blocked is so for it too."""

import os
import resource
import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("count", [4, 5, 6, 7, 8, 12])
def test_the_program_runs(binary, tmp_path, count):
    done = subprocess.run(
        [binary, "run", "--", "/bin/sh", "-c", "echo out; exit 7"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=600,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count)),
    )
    assert (done.stdout, done.returncode) == (b"out\n", 7)


@pytest.mark.parametrize("command, status", [("./missing", 127), ("./plain", 126)])
def test_what_cannot_be_started_is_told(binary, tmp_path, command, status):
    (tmp_path / "plain").write_text("text")
    done = subprocess.run(
        [binary, "run", "--", command], cwd=tmp_path, capture_output=True, stdin=subprocess.DEVNULL, timeout=600
    )
    assert done.returncode == status and command.encode() in done.stderr


STATE = """
import os, signal, sys
def is_open(number):
    try:
        return os.fstat(number) is not None
    except OSError:
        return False
os.write(int(sys.argv[1]), repr(([is_open(number) for number in range(3)], sorted(signal.pthread_sigmask(0, [])))).encode())
os._exit(7)
"""


def state_of(folder, begin, blocked=(), closed=()):
    def as_given():
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in closed:
            os.close(number)

    told, tell = os.pipe()
    status = subprocess.run(
        [*begin, sys.executable, "-I", "-c", STATE, str(tell)],
        cwd=folder,
        pass_fds=[tell],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=600,
        preexec_fn=as_given,
    ).returncode
    os.close(tell)
    with os.fdopen(told) as lines:
        return lines.read(), status


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("verb, status", [("run", 7), ("plan", 2)])
def test_what_is_closed_stays_closed(binary, tmp_path, closed, verb, status):
    without, _ = state_of(tmp_path, [], closed=closed)
    assert state_of(tmp_path, [binary, verb, "--"], closed=closed) == (without, status)


@pytest.mark.parametrize("blocked", [{signal.SIGCHLD}, {signal.SIGUSR1}, set(range(1, 31)) - {9, 19}])
@pytest.mark.parametrize("verb, status", [("run", 7), ("plan", 2)])
def test_what_is_blocked_stays_blocked_and_the_end_is_heard(binary, tmp_path, blocked, verb, status):
    without, _ = state_of(tmp_path, [], blocked=blocked)
    assert state_of(tmp_path, [binary, verb, "--"], blocked=blocked) == (without, status)
