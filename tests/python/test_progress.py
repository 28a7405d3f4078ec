"""What is being done and how far: on a terminal alone, only where it takes more than a second, and nothing of it stays."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

import pytest

from common import RECORDINGS

CLEAR = b"\r\x1b[K"
MESSAGE = b"RuntimeError: CUDA error: out of memory\n"


class Terminal:
    """A program whose standard error is a terminal of so many columns; its standard input waits for `feed`."""

    def __init__(self, command, columns=80, stdin=None, stdout=subprocess.PIPE, **environment):
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        own = {"TERM": "xterm", "LC_ALL": "C.UTF-8", **environment}

        def lead():
            os.setsid()
            fcntl.ioctl(2, termios.TIOCSCTTY, 0)  # in its foreground

        self.process = subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=terminal, env={**os.environ, **own}, preexec_fn=lead
        )
        os.close(terminal)
        self.seen = b""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self):
        while True:
            ready, _, _ = select.select([self.master], [], [], 0.05)
            try:
                if ready:
                    got = os.read(self.master, 65536)
                    if not got:
                        return
                    self.seen += got
                elif self.process.poll() is not None:
                    return
            except OSError:
                return

    def until(self, words, times=1):
        """Waits until it has drawn that so often."""
        while self.seen.count(words) < times:
            assert self.process.poll() is None, self.seen
            time.sleep(0.01)

    def end(self):
        out, _ = self.process.communicate()
        self.reader.join()
        os.close(self.master)
        return out

    def left(self):
        """What stands on the screen at the end: what is cleared is gone."""
        lines = self.seen.replace(b"\r\n", b"\n").split(b"\n")
        return b"\n".join(line.split(CLEAR)[-1] for line in lines)


def slow(binary, tmp_path, drawn=1, name="a pipe", **how):
    """Explains a message that comes when so many lines were drawn; 0: a while after it began to wait."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    terminal = Terminal([binary, "explain", pipe], **how)
    with open(pipe, "wb") as end:
        if drawn:
            terminal.until(b"fault", drawn)
        else:
            time.sleep(1.3)
        end.write(MESSAGE)
    return terminal, terminal.end()


def test_what_takes_long_is_told_and_nothing_of_it_stays(binary, tmp_path):
    terminal, out = slow(binary, tmp_path, drawn=2)
    drawn = terminal.seen.split(CLEAR)
    assert len(drawn) >= 3 and re.fullmatch(rb"faultline: reading a pipe, [1-9]\d* s", drawn[1]), drawn
    assert terminal.left() == b"" and b"memory/out-of-memory" in out and b"\x1b[K" not in out


@pytest.mark.parametrize("columns", [12, 30])
def test_a_line_is_no_wider_than_the_terminal(binary, tmp_path, columns):
    terminal, _ = slow(binary, tmp_path, name="a name that is longer than that", columns=columns)
    drawn = [line.decode() for line in terminal.seen.split(CLEAR) if line]
    assert drawn and max(map(len, drawn)) < columns and drawn[0].endswith("…")


def test_hostile_names_do_nothing_to_the_terminal(binary, tmp_path):
    terminal, _ = slow(binary, tmp_path, name="x\x1b[2J\ny")
    assert terminal.seen.replace(CLEAR, b"").count(b"\x1b") == 0 and b"\n" not in terminal.seen


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": ""}])
def test_a_dumb_terminal_shows_nothing(binary, tmp_path, environment):
    terminal, out = slow(binary, tmp_path, drawn=0, **environment)
    assert terminal.seen == b"" and out


def test_without_colours_it_is_the_same(binary, tmp_path):
    terminal, _ = slow(binary, tmp_path, NO_COLOR="1")
    assert b"reading a pipe" in terminal.seen and terminal.left() == b""


def test_what_is_quick_shows_nothing(binary):
    terminal = Terminal([binary, "explain", RECORDINGS / "gpt_oom.pickle.xz"])
    assert b"memory/out-of-memory" in terminal.end() and terminal.left() == b""
    assert not re.search(rb", 0 s", terminal.seen)  # on a busy machine it may take longer than a second


def test_pipes_and_files_get_nothing(binary, tmp_path):
    reader = subprocess.Popen(
        [binary, "explain", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    time.sleep(1.4)
    out, told = reader.communicate(MESSAGE)
    assert out and told == b""


def test_who_ends_it_finds_a_clean_line(binary, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDWR)
    terminal = Terminal([binary, "explain", pipe])
    terminal.until(b"reading pipe")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.end()
    os.close(holder)
    assert terminal.process.returncode == -signal.SIGINT
    assert b"reading pipe" in terminal.seen and terminal.left() == b""


def test_the_runs_of_a_plan_are_named(binary, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import time, torch\n"
        "x = torch.zeros(1 << 28, device='cuda')\n"
        "time.sleep(1)\n"
        "y = torch.zeros(1 << 33, device='cuda')\n"
    )
    terminal = Terminal([binary, "plan", "--gpu", "T4", "-o", tmp_path / "left", "--", sys.executable, program], 120)
    terminal.end()
    lines = re.findall(rb"faultline: running it with (.*?); \d+ of \d+ done, \d+ s", terminal.seen)
    assert any(b"a GPU that grows (" in line for line in lines), terminal.seen[-2000:]
    assert b"running it with" not in terminal.left()
