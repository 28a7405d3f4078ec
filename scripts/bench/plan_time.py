#!/usr/bin/env python3
"""How long `plan` takes: the verdict on a GPT-2 small that fits, and one that does not fit with all that is tried for it.

  python scripts/bench/plan_time.py [--faultline build/faultline] [--python .venv/bin/python] [--rounds 1]

Prints a table: seconds on the clock, seconds of CPU of all its processes, the most memory that one of them had, how many runs of the program it made. The aims are 5 seconds for a
verdict and 60 seconds for a program that does not fit, on two cores that nobody else uses; the load of the machine is printed beside them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPT = str(ROOT / "examples" / "train_gpt.py")
CASES = (
    ("import torch", None, [], []),
    ("GPT-2 small, batch 4: fits", 5, ["--gpu", "T4"], [GPT, "--batch-size", "4"]),
    ("GPT-2 small, batch 8: fits tightly", 5, ["--gpu", "T4"], [GPT, "--batch-size", "8"]),
    ("GPT-2 small, batch 16: does not fit", 60, ["--gpu", "T4"], [GPT, "--batch-size", "16"]),
    ("the same, verdict alone", 10, ["--gpu", "T4", "--no-try"], [GPT, "--batch-size", "16"]),
)


def measured(command: list[str]) -> tuple[float, float, int, int]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, cpu, after.ru_maxrss, process.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faultline", default=str(ROOT / "build" / "faultline"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=1, help="the shortest of so many is shown")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before\n")
    print("| what | status | seconds | of CPU | aim | MB at most | runs |\n|---|---|---|---|---|---|---|")
    for name, aim, verb, program in CASES:
        best, runs = None, 0
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as folder:
                command = [options.python, "-c", "import torch"]
                if program:
                    command = [options.faultline, "plan", *verb, "-o", f"{folder}/run", "--", options.python, *program]
                now = measured(command)
                runs = len(list(Path(folder).rglob("plan.json")))
            best = now if best is None or now[0] < best[0] else best
        seconds, cpu, kib, status = best
        print(
            f"| {name} | {status} | {seconds:.1f} | {cpu:.1f} | {aim or '–'} | {kib * 1024 / 1e6:,.0f} | {runs or '–'} |",
            flush=True,
        )
    print(f"\nload {os.getloadavg()[0]:.1f} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
