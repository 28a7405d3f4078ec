"""Plans every recorded program and prints the plan beside what the GPU did, as a table.

  python compare.py RECORDED_FOLDER [--faultline build/faultline] [--gpu H200] [NAME…]

RECORDED_FOLDER holds what record_all.sh wrote (the repository's own is tests/fixtures/plan/h200). Runs with the PyTorch of this interpreter; no GPU is used.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def planned(binary, gpu, program, release):
    """Planned as the release of PyTorch would run it that was recorded, where the dry run decides in its place."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                binary,
                "plan",
                "--gpu",
                gpu,
                "--steps",
                "0",
                "--seconds",
                "0",
                "--no-try",
                "-o",
                f"{folder}/run",
                "--",
                sys.executable,
                str(program),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "FAULTLINE_PLAN_RELEASE": release},
        )
        summaries = list(Path(folder, "run").glob("process-*.json"))
        if not summaries:
            raise SystemExit(f"{program}: {done.stderr}")
        return json.loads(summaries[0].read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recorded", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--faultline", default=str(HERE.parent.parent / "build" / "faultline"))
    parser.add_argument("--gpu", default="H200")
    options = parser.parse_args()
    print(
        "| program | real allocated | planned | off by | real reserved | planned | off by | requests real / planned | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    within, unplanned = [0, 0, 0], 0
    for path in sorted(options.recorded.glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        if options.names and name not in options.names:
            continue
        with gzip.open(path, "rt") as file:
            real = json.load(file)
        plan = planned(options.faultline, options.gpu, HERE / "programs" / f"{name}.py", real["torch"])
        if plan["exception"]:
            unplanned += 1
            print(
                f"| {name} | {real['peak_allocated']:,} | not planned | | {real['peak_reserved']:,} | {plan['exception']['type']} | | "
                f"{real['allocations']:,} / {plan['allocations']:,} | {plan['seconds']:.1f} |",
                flush=True,
            )
            continue
        off = [100 * (plan[f"peak_{what}"] / real[f"peak_{what}"] - 1) for what in ("allocated", "reserved")]
        within = [within[0] + 1, within[1] + (abs(off[0]) <= 1), within[2] + (abs(off[1]) <= 3)]
        print(
            f"| {name} | {real['peak_allocated']:,} | {plan['peak_allocated']:,} | {off[0]:+.2f} % | {real['peak_reserved']:,} | {plan['peak_reserved']:,} | {off[1]:+.2f} % | "
            f"{real['allocations']:,} / {plan['allocations']:,} | {plan['seconds']:.1f} |",
            flush=True,
        )
    print(
        f"\nAllocated within 1 %: {within[1]} of {within[0]}. Reserved within 3 %: {within[2]} of {within[0]}. Not planned: {unplanned}."
    )


main()
