"""Plans the programs of this folder and compares with what was recorded on a GPU: python compare.py RECORDINGS --gpu H200 --python PYTHON [NAME …]

RECORDINGS is what record.py made, unpacked. Peaks are bytes in use of the pool, as Device.memory_stats() counts them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("recordings", type=Path)
parser.add_argument("names", nargs="*")
parser.add_argument("--gpu", default="H200")
parser.add_argument("--python", default=sys.executable)
parser.add_argument("--faultline", default=str(HERE.parent.parent / "build" / "faultline"))
arguments = parser.parse_args()

for program in sorted((HERE / "programs").glob("*.py")):
    name = program.stem
    if arguments.names and name not in arguments.names:
        continue
    measured = {
        way: json.loads((arguments.recordings / f"{name}.{way}.json").read_text())["stats"]["peak_bytes_in_use"]
        for way in ("no_search", "default")
    }
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "run")
        subprocess.run(
            [
                arguments.faultline,
                "plan",
                "--gpu",
                arguments.gpu,
                "--no-try",
                "-o",
                run,
                "--",
                arguments.python,
                program,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        )
        summary = json.loads(next(run.glob("process-*.json")).read_text())
    planned = summary["peak_allocated"]
    print(
        f"| {name} | {planned / 2**20:,.1f} | {measured['no_search'] / 2**20:,.1f} | {planned / measured['no_search'] - 1:+.1%} | "
        f"{measured['default'] / 2**20:,.1f} | {measured['default'] / measured['no_search'] - 1:+.1%} | {summary['seconds']:.0f} s |",
        flush=True,
    )
