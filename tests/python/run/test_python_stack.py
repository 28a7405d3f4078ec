"""Python stacks read from inside a program, in every interpreter this machine has, against what the interpreter itself says."""

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import FAULTLINE

PROGRAM = Path(__file__).resolve().parent / "programs" / "stack_program.py"
CASES = [
    "kinds_of_code",
    "a_short_buffer_gets_the_innermost_frames",
    "many_threads",
    "learns_while_the_main_thread_waits",
    "a_thread_unknown_to_python",
    "reused_memory_is_told_apart",
    "nothing_of_it_is_seen",
    "monitoring_sees_nothing",
    "after_fork",
    "at_exit",
]


def interpreters():
    candidates = [sys.executable] + [shutil.which(f"python3.{minor}") for minor in range(9, 20)]
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python")))
    by_version = {}
    for path in filter(None, candidates):
        ask = (
            "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name + sys.abiflags, sys.base_prefix)"
        )
        said = subprocess.run([path, "-c", ask], capture_output=True, text=True)
        version, implementation, prefix = (said.stdout.split() + [""] * 3)[:3]
        if implementation == "cpython" and tuple(map(int, version.split("."))) >= (3, 9):
            by_version.setdefault((version, prefix), path)
    return [
        pytest.param(path, id=f"{version}-{Path(prefix).name}")
        for (version, prefix), path in sorted(by_version.items())
    ]


PROBE = Path(FAULTLINE).with_name("libstack_probe.so")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("interpreter", interpreters())
def test_stack(interpreter, case, capsys):
    said = subprocess.run(
        [interpreter, "-X", "faulthandler", str(PROGRAM), str(PROBE), case], capture_output=True, text=True
    )
    assert said.returncode == 0 and said.stderr == "", said.stderr[-6000:]
    with capsys.disabled():
        print(said.stdout, end="")
