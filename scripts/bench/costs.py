#!/usr/bin/env python3
"""What no test may judge, because a clock says it: how long a stack takes to be read, what Python takes to start under `run`, and how the time for a hostile text grows with its length.

    scripts/bench/costs.py [--faultline build/faultline] [--python PYTHON]

Reads of stacks are measured inside a program, beside the interpreter's own walk and the C++ runtime's unwinder. Texts are packed, each of 4 and of 16 MB; where the longer
one takes more than eight times as long, its row says so, and the status is 1.
"""

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STACKS = ROOT / "tests/python/run/programs/stack_program.py"
HOSTILE = ROOT / "src/pack/hostile_units.inc"
SHORT, LONG = 4 << 20, 16 << 20


def stacks(python, probe):
    subprocess.run([python, str(STACKS), str(probe), "cost"], check=True)
    library = ctypes.CDLL(str(probe))
    library.probe_native_cost.restype = ctypes.c_double
    print(f"native stack of this Python: {min(library.probe_native_cost(2000) for _ in range(9)):.0f} ns")


def starts(python):
    """Processor time of an empty program, with what `run` puts into it and without."""
    injected = str(ROOT / "python/faultline/_inject")
    with tempfile.TemporaryDirectory() as folder:
        ways = {"alone": {}, "under run": {"PYTHONPATH": injected, "FAULTLINE_RUN_FOLDER": folder}}
        for name, more in ways.items():
            environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, **more}
            taken = sorted(spent([python, "-c", "pass"], env=environment) for _ in range(15))
            print(f"Python starts {name}: {1000 * taken[7]:.0f} ms")


def spent(command, **how):
    """Seconds of processor time."""
    before = os.times()
    subprocess.run(command, check=True, **how)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def units():
    """The pieces that src/pack/hidden_test.cpp repeats, as C++ writes them."""
    for line in HOSTILE.read_text().splitlines():
        if line.startswith('"'):
            text = line.rstrip(",")[1:-1]
            yield text.encode().decode("unicode_escape").encode("latin-1")


def seconds(faultline, unit, size, folder):
    path = Path(folder, "text.log")
    path.write_bytes(b"CUDA out of memory\n/usr/" + unit * (size // len(unit)))
    command = [faultline, "pack", path.name, "-o", f"{time.monotonic_ns()}.zip"]
    return spent(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def growth(faultline):
    grown = 0
    with tempfile.TemporaryDirectory() as folder:
        for unit in units():
            short, long = seconds(faultline, unit, SHORT, folder), seconds(faultline, unit, LONG, folder)
            is_grown = long > 8 * short + 0.2
            grown += is_grown
            print(f"{unit!r:>40}  {short:6.2f} s  {long:6.2f} s{'  GROWS FASTER THAN THE TEXT' if is_grown else ''}")
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faultline", default=str(ROOT / "build/faultline"))
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    faultline = os.path.abspath(arguments.faultline)
    starts(arguments.python)
    starts(arguments.python)
    stacks(arguments.python, Path(faultline).with_name("libstack_probe.so"))
    began = time.monotonic()
    grown = growth(faultline)
    print(f"{time.monotonic() - began:.0f} s in all")
    return 1 if grown else 0


sys.exit(main())
