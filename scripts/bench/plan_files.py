#!/usr/bin/env python3
"""What keeping a program's files aside costs: the same programs plain, plain again (the control) and under `faultline keep-aside`, in turns.

    python3 scripts/bench/plan_files.py [--faultline build/faultline] [--python .venv/bin/python] [--rounds 7]

Prints a table of medians: seconds, processor seconds (the program's and the watch's), and the ratio to plain. proot, which redirects paths by the same means, takes
part where it is installed.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

PROGRAMS = {
    "import torch": "import torch",
    "write, rename and remove 2,000 files": "import os\nfor n in range(2000):\n  open(f't{n}', 'w').write('x'); os.replace(f't{n}', f'u{n}'); os.remove(f'u{n}')",
    "write 512 MiB to one file": "f = open('big', 'wb')\nfor n in range(512): f.write(bytes(1 << 20))",
    "stat 100,000 times": "import os\nfor n in range(100000): os.stat('/usr/bin')",
}


def run(command, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--faultline", default="build/faultline")
    arguments.add_argument("--python", default=".venv/bin/python")
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    faultline, python = os.path.abspath(options.faultline), os.path.abspath(options.python)
    print(
        "| program | | seconds | processor seconds | ratio of seconds | ratio of processor seconds |\n|---|---|---|---|---|---|"
    )
    for name, program in PROGRAMS.items():
        taken = {}
        for _ in range(options.rounds):
            for way in ("plain", "plain again", "kept aside", *(["proot"] if shutil.which("proot") else [])):
                with tempfile.TemporaryDirectory() as folder:
                    own = os.path.join(folder, "own")
                    os.mkdir(own)
                    command = [python, "-c", program]
                    if way == "kept aside":
                        command = [
                            faultline,
                            "keep-aside",
                            "--aside",
                            f"{own}/aside",
                            "--own-folder",
                            own,
                            "--effects",
                            f"{own}/effects",
                            "--",
                            *command,
                        ]
                    elif way == "proot":
                        command = ["proot", "-b", f"{own}:/mnt", *command]
                    taken.setdefault(way, []).append(run(command, folder))
        plain = [statistics.median(part) for part in zip(*taken["plain"])]
        for way, times in taken.items():
            wall, processor = (statistics.median(part) for part in zip(*times))
            print(
                f"| {name} | {way} | {wall:.2f} | {processor:.2f} | {wall / plain[0]:.2f} | {processor / plain[1]:.2f} |",
                flush=True,
            )


main()
