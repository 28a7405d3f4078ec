#!/usr/bin/env python3
"""How fast `faultline explain` finds a pool's map in the middle of a long log, beside `grep -c` on the same file.

    scripts/bench/pool_log.py [--faultline build/faultline] [--megabytes 200] [--times 5]

The log is a training's, 160 bytes a line, with "of size" in each as such logs have; the map and its traceback stand in the middle. Seconds are wall and CPU, the best of all runs, with the file in the page cache.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts", "bfc"))
import dump_forms  # noqa: E402


def write_log(path, size_bytes):
    pool = dump_forms.situation("fragmented")
    block = "".join(
        f"2024-05-01 12:34:56.{at:06d}: I tensorflow/core/common_runtime/executor.cc:1197] step {at} of 1000000: loss 0.{at % 997:03d} "
        f"accuracy 0.91, batch of size 32, {at % 400} examples/s\n"
        for at in range(10000)
    )
    with open(path, "w") as file:
        for half in (0, 1):
            written = 0
            while written < size_bytes // 2:
                file.write(block)
                written += len(block)
            if half == 0:
                file.write(dump_forms.dump(pool, "2023") + dump_forms.failure(pool))


def best(command, times):
    wall, cpu = [], []
    for _ in range(times):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, capture_output=True, check=False)  # grep stops at its first hit where nobody reads
        wall.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(wall), min(cpu)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faultline", default=os.path.join(ROOT, "build", "faultline"))
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--times", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "train.log")
        write_log(log, arguments.megabytes * 1000000)
        size = os.path.getsize(log)
        for label, command in (
            ("grep -c 'ran out of memory'", ["grep", "-c", "ran out of memory", log]),
            ("grep -c ' of size '", ["grep", "-c", " of size ", log]),
            ("faultline explain", [arguments.faultline, "explain", "--format", "json", log]),
        ):
            wall, cpu = best(command, arguments.times)
            print(
                f"{label:<30} {wall:6.2f} s  {cpu:6.2f} s of CPU  {size / 1e8:.2f} x 100 MB  {cpu / (size / 1e8):.2f} s of CPU for 100 MB"
            )


if __name__ == "__main__":
    main()
