"""A program under `faultline run` fares as without it: the signals it gets, how it stops and ends, and what the caller sees of that."""

import ctypes
import os
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common import FAULTLINE, PROGRAMS

# Prints every signal that it is told, and ends when it reads a line.
LISTENER = """
import os, signal, sys
def told(number, frame):
    os.write(1, f"{signal.Signals(number).name}\\n".encode())
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), told)
os.write(1, b"ready %d\\n" % os.getpid())
os.read(0, 100)
sys.exit(5)
"""


BEGUN = []


@pytest.fixture(autouse=True)
def nothing_left_running():
    yield
    for process in BEGUN:
        if process.poll() is None:
            for child in children_of(process.pid):
                os.kill(child, signal.SIGKILL)
            process.kill()
            process.wait()
    BEGUN.clear()


def started(folder, *command, verb=("run", "--gpu", "virtual:1GiB"), before=lambda: None, **how):
    def prepare():
        os.setpgrp()
        before()

    arguments = [FAULTLINE, *verb, "-o", str(folder / "run"), "--", *command]
    BEGUN.append(
        subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=prepare,
            **how,
        )
    )
    return BEGUN[-1]


def listener(folder, *names, **how):
    process = started(folder, sys.executable, "-c", LISTENER, *names, **how)
    word, pid = process.stdout.readline().split()
    assert word == "ready"
    return process, int(pid)


def ended(process):
    out, err = process.communicate("end\n", timeout=600)
    return out.split(), err


def wait_until(holds):
    end = time.monotonic() + 600
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def children_of(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    "name",
    [
        "SIGINT",
        "SIGTERM",
        "SIGHUP",
        "SIGQUIT",
        "SIGUSR1",
        "SIGUSR2",
        "SIGALRM",
        "SIGWINCH",
        "SIGXCPU",
        "SIGPWR",
        "SIGIO",
        "SIGABRT",
        "SIGRTMIN",
    ],
)
def test_a_signal_to_faultline_alone_reaches_the_program_once(tmp_path, name):
    process, _ = listener(tmp_path, name)
    os.kill(process.pid, getattr(signal, name))
    line = process.stdout.readline()
    time.sleep(0.2)  # a second one would come now
    out, _ = ended(process)
    assert [line.strip(), *out] == [name]
    assert process.returncode == 5


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_plan_hands_signals_on_as_well(tmp_path, name):
    process, _ = listener(tmp_path, name, verb=("plan",))
    os.kill(process.pid, getattr(signal, name))
    line = process.stdout.readline()
    time.sleep(0.2)
    out, _ = ended(process)
    assert [line.strip(), *out] == [name]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR1"])
def test_a_signal_to_the_group_reaches_the_program_once(tmp_path, name):
    process, _ = listener(tmp_path, name)
    for times in (1, 2):
        os.killpg(process.pid, getattr(signal, name))
        assert process.stdout.readline().strip() == name
        time.sleep(0.2)
    out, _ = ended(process)
    assert out == []
    assert process.returncode == 5


def test_a_signal_that_the_caller_ignores_stays_ignored(tmp_path):
    process, pid = listener(
        tmp_path,
        "SIGUSR1",
        before=lambda: [
            signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
        ],
    )
    ignored = int(
        next(
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn")
        ).split()[1],
        16,
    )
    os.kill(process.pid, signal.SIGHUP)
    out, _ = ended(process)
    assert out == []
    assert process.returncode == 5
    # CPython ignores SIGPIPE and SIGXFSZ by itself.
    assert [bool(ignored >> (number - 1) & 1) for number in (signal.SIGHUP, signal.SIGCHLD)] == [True, True]


@pytest.mark.parametrize("ignored", [False, True])
def test_closed_pipes_are_what_they_were_for_the_caller(tmp_path, ignored):
    def before():
        signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL)

    process = started(tmp_path, "sh", "-c", "grep SigIgn /proc/self/status", before=before, restore_signals=False)
    out, _ = process.communicate(timeout=600)
    assert bool(int(out.split()[1], 16) >> (signal.SIGPIPE - 1) & 1) == ignored


class Terminal:
    """A terminal with a small shell in it, as an interactive one: jobs in groups of their own, stopped ones continued on `fg`."""

    SHELL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
def become():
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
job = subprocess.Popen(sys.argv[1:], preexec_fn=become)
while True:
    _, status = os.waitpid(job.pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("shell: stopped", os.WSTOPSIG(status), flush=True)
    sys.stdin.readline()
    os.tcsetpgrp(0, job.pid)
    os.killpg(job.pid, signal.SIGCONT)
print("shell: ended", status, flush=True)
"""

    def __init__(self, *command):
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            os.execv(sys.executable, [sys.executable, "-c", self.SHELL, *command])
        self.text = ""

    def until(self, words, times=1):
        end = time.monotonic() + 600
        while sum(words in line for line in self.text.split("\n")[:-1]) < times:  # whole lines: a read may end anywhere
            assert time.monotonic() < end, self.text
            if select.select([self.side], [], [], 0.1)[0]:
                self.text += os.read(self.side, 4096).decode(errors="replace")

    def type(self, text):
        os.write(self.side, text.encode())

    def close(self):
        os.close(self.side)
        os.waitpid(self.pid, 0)


def test_each_ctrl_c_reaches_the_program_once(tmp_path):
    terminal = Terminal(
        FAULTLINE,
        "run",
        "--gpu",
        "virtual",
        "-o",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        LISTENER,
        "SIGINT",
    )
    terminal.until("ready")
    for times in (1, 2):
        terminal.type("\x03")
        terminal.until("SIGINT", times)
    time.sleep(0.2)
    terminal.type("end\n")
    terminal.until("shell: ended")
    assert terminal.text.count("SIGINT") == 2
    assert f"shell: ended {5 << 8}" in terminal.text
    terminal.close()


def test_ctrl_z_stops_the_job_and_fg_goes_on(tmp_path):
    terminal = Terminal(
        FAULTLINE,
        "run",
        "--gpu",
        "virtual",
        "-o",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        LISTENER,
        "SIGCONT",
    )
    terminal.until("ready")
    for times in (1, 2):
        terminal.type("\x1a")
        terminal.until(f"shell: stopped {int(signal.SIGTSTP)}", times)
        terminal.type("fg\n")
        terminal.until("SIGCONT", times)
    terminal.type("end\n")
    terminal.until("shell: ended")
    assert terminal.text.count("SIGCONT") == 2
    assert f"shell: ended {5 << 8}" in terminal.text
    terminal.close()


def test_a_program_that_does_not_stop_at_ctrl_z_is_not_stopped(tmp_path):
    terminal = Terminal(
        FAULTLINE,
        "run",
        "--gpu",
        "virtual",
        "-o",
        str(tmp_path / "run"),
        "--",
        sys.executable,
        "-c",
        LISTENER,
        "SIGTSTP",
    )
    terminal.until("ready")
    terminal.type("\x1a")
    terminal.until("SIGTSTP")
    terminal.type("end\n")
    terminal.until("shell: ended")
    assert "stopped" not in terminal.text
    terminal.close()


def test_a_stop_of_faultline_alone_stops_the_program_and_a_continue_continues_it(tmp_path):
    process, pid = listener(tmp_path, "SIGUSR1")
    os.kill(process.pid, signal.SIGTSTP)
    wait_until(lambda: state_of(pid) == "T" and state_of(process.pid) == "T")
    os.kill(process.pid, signal.SIGCONT)
    wait_until(lambda: state_of(pid) != "T" and state_of(process.pid) != "T")
    ended(process)
    assert process.returncode == 5


def test_a_stop_right_after_a_continue_stays(tmp_path):
    """The stop takes back a continue that waits in one process of the group and has been heard by another."""
    process, pid = listener(tmp_path, "SIGUSR1")
    for turn in range(100):
        os.killpg(process.pid, signal.SIGTSTP)
        wait_until(lambda: state_of(pid) == "T" and state_of(process.pid) == "T")
        os.killpg(process.pid, signal.SIGCONT)
        end = time.monotonic() + turn * 5e-6
        while time.monotonic() < end:
            pass
        os.killpg(process.pid, signal.SIGTSTP)
        wait_until(lambda: state_of(pid) == "T" and state_of(process.pid) == "T")
    os.killpg(process.pid, signal.SIGCONT)
    ended(process)
    assert process.returncode == 5


def test_a_wake_up_for_a_program_that_has_stopped_again_is_taken_back(tmp_path):
    """The process beside Faultline that wakes it when the program goes on may see that just before the program stops again."""
    process, pid = listener(tmp_path, "SIGUSR1")
    (beside,) = [child for child in children_of(process.pid) if child != pid]
    os.killpg(process.pid, signal.SIGTSTP)
    wait_until(lambda: state_of(pid) == "T" and state_of(process.pid) == "T")

    def turns():
        return re.search(r"^voluntary_ctxt_switches:.*", Path(f"/proc/{process.pid}/status").read_text(), re.M)[0]

    before = turns()
    told = struct.pack(
        "iiiiii104x", signal.SIGCONT, 0, -1, 0, beside, os.getuid()
    )  # siginfo_t, as that process sends it
    assert ctypes.CDLL(None).syscall(129, process.pid, int(signal.SIGCONT), told) == 0  # rt_sigqueueinfo
    wait_until(lambda: turns() != before and state_of(process.pid) == "T")
    assert state_of(pid) == "T"
    os.killpg(process.pid, signal.SIGCONT)
    ended(process)
    assert process.returncode == 5


def test_a_program_that_is_stopped_and_continued_by_itself_does_not_leave_faultline_behind(tmp_path):
    process, pid = listener(tmp_path, "SIGUSR1")
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T")
    os.kill(pid, signal.SIGCONT)
    wait_until(lambda: state_of(process.pid) != "T")
    ended(process)
    assert process.returncode == 5


def test_nothing_is_left_behind_when_faultline_is_killed(tmp_path):
    process, pid = listener(tmp_path, "SIGUSR1")
    others = [child for child in children_of(process.pid) if child != pid]
    assert len(others) == 1
    process.kill()
    wait_until(lambda: not Path(f"/proc/{others[0]}").exists() or state_of(others[0]) == "Z")
    process.communicate("end\n", timeout=600)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGPIPE])
def test_a_program_that_a_signal_ends_is_seen_to_be_ended_by_it(tmp_path, number):
    def with_core_files():
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    process = started(
        tmp_path, "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$", before=with_core_files, cwd=tmp_path
    )
    process.communicate(timeout=600)
    assert process.returncode == -number
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # and Faultline leaves no core file of its own


# Standard error that nobody reads keeps the report waiting: a pipe takes 64 KiB.
FULL_PIPE = "head -c 65536 /dev/zero | tr '\\0' '.' >&2"


def has_ended(folder):
    """The program: from then on its command is told whole."""
    command = folder / "run" / "command.json"
    return command.exists() and command.read_text() != "{}\n"


def test_a_report_that_is_ended_costs_the_report_and_not_the_status(tmp_path):
    process = started(tmp_path, "sh", "-c", f"{FULL_PIPE}; echo ended; exit 9")
    assert process.stdout.readline() == "ended\n"
    wait_until(lambda: len(children_of(process.pid)) == 2 and has_ended(tmp_path))
    time.sleep(0.2)
    process.terminate()
    wait_until(lambda: len(children_of(process.pid)) < 2)  # before there is room to write in
    _, err = process.communicate(timeout=600)
    assert process.returncode == 9
    assert "the report could not be made" in err and str(tmp_path / "run") in err
    assert err.lstrip(".").count("\n") == 1


@pytest.mark.parametrize("end", ["exit 9", "kill -SEGV $$"])
def test_a_report_that_dies_costs_the_report_and_not_the_status(tmp_path, end):
    process = started(tmp_path, "sh", "-c", f"{FULL_PIPE}; echo ended; {end}")
    assert process.stdout.readline() == "ended\n"
    wait_until(lambda: has_ended(tmp_path))
    wait_until(
        lambda: any(
            "faultline-group" not in Path(f"/proc/{child}/comm").read_text() for child in children_of(process.pid)
        )
    )
    time.sleep(0.2)
    for child in children_of(process.pid):
        if "faultline-group" not in Path(f"/proc/{child}/comm").read_text():
            os.kill(child, signal.SIGKILL)
    _, err = process.communicate(timeout=600)
    assert process.returncode == (9 if "exit" in end else -signal.SIGSEGV)
    assert "killed by signal 9" in err


def test_a_report_without_memory_costs_the_report_and_not_the_status(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")  # else each of its threads has set 64 MiB aside
    program = f"""
import os, resource, subprocess, sys
subprocess.call([{str(PROGRAMS / 'leak_at_exit')!r}])
resource.prlimit(os.getppid(), resource.RLIMIT_AS, (1 << 20, resource.getrlimit(resource.RLIMIT_AS)[1]))
sys.exit(11)
"""
    process = started(tmp_path, sys.executable, "-c", program)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 11
    assert "not enough memory" in err, err
