#!/usr/bin/env python3
"""Plans a small program of each of many libraries, beside what the program really made when it is run on the CPU without Faultline.

  python scripts/plan_libraries/measure.py [NAME …] [--jobs N] [--python /path/to/python] [--faultline build/faultline] [--gpu A100-40GB] [--keep FOLDER]

Each program is run twice: with DEVICE=cpu, where it writes the bytes of its parameters with buffers, of the gradients and of the optimizer's state, as its own tensors' shapes have
them; and as a plan. Prints a table, and ends with status 1 where a plan does not end well, a phase is missing, or parameters or states differ by more than 3 %. Programs whose
library is not installed are left out and named. No GPU is used.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
ALLOWED = 0.03
MIB = 1 << 20


def command_of(program: Path, python: str) -> list[str]:
    ranks = re.search(r"torchrun --nproc-per-node (\d+)", program.read_text())
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", ranks[1]] if ranks else []
    return [python, *launcher, str(program)]


def truth_of(program: Path, python: str, folder: Path) -> dict | str:
    """What it made; a sentence where it does not run."""
    path = folder / "truth.json"
    done = subprocess.run(
        [python, str(program)],  # one rank is enough
        env={**os.environ, "DEVICE": "cpu", "TRUTH": str(path), "CUDA_VISIBLE_DEVICES": ""},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    lines = done.stderr.strip().splitlines()
    return json.loads(path.read_text()) if path.exists() else lines[-1] if lines else f"status {done.returncode}"


def plan_of(program: Path, python: str, folder: Path, options) -> dict:
    command = command_of(program, python)
    gpu = f"{command[-2]}x{options.gpu}" if "--nproc-per-node" in command else options.gpu
    shutil.rmtree(folder / "plan", ignore_errors=True)
    done = subprocess.run(
        [
            options.faultline,
            "plan",
            "--gpu",
            gpu,
            "--no-try",
            "--seconds",
            "0",
            "-o",
            str(folder / "plan"),
            "--",
            *command,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    (folder / "plan.txt").write_text(done.stderr)
    report = folder / "plan" / "report.json"
    return json.loads(report.read_text())["plan"] if report.exists() else {"verdict": done.stderr[-300:]}


def within(planned: int, real: int) -> bool:
    return abs(planned - real) <= max(ALLOWED * real, 64 << 10)  # each tensor is rounded up to 512 bytes


def problems_of(plan: dict, truth: dict) -> list[str]:
    if plan["verdict"] not in ("fits", "fits-tightly") or plan.get("exception") or plan.get("unplanned"):
        return [f"{plan['verdict']} {plan.get('unplanned', '')}".strip()]
    live, wrong = plan["peak"]["live"], []
    for what in ("parameters", "optimizer"):
        if not within(live.get(what, 0), truth[what]):
            wrong.append(what)
    if live.get("gradients", 0) > truth["gradients"] * (1 + ALLOWED) + (64 << 10):
        wrong.append("gradients")
    if plan["steps"] != truth["steps"] and not plan["stopped"]:
        wrong.append(f"{plan['steps']} steps instead of {truth['steps']}")
    missing = set(truth["phases"]) - {phase["name"] for phase in plan["phases"]}
    wrong += [f"no phase {name}" for name in sorted(missing)]
    wrong += [note["verdict"] for note in plan["notes"] if note["verdict"]]
    return wrong


def row_of(name: str, plan: dict, truth: dict, wrong: list[str]) -> str:
    live = plan.get("peak", {}).get("live", {})
    cells = [
        f"{live.get(what, 0) / MIB:,.2f} / {truth[what] / MIB:,.2f}"
        for what in ("parameters", "gradients", "optimizer")
    ]
    cells += [f"{plan.get('needed', 0) / MIB:,.0f}", str(plan.get("steps", "")), f"{plan.get('seconds', 0):.0f} s"]
    return " | ".join(["| " + name, *cells, ("; ".join(wrong) or "as it is") + " |"])


def measured(program: Path, options) -> tuple[str, bool, str]:
    """The row of the table, whether something in it is wrong, and why there is none."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.keep, program.stem) if options.keep else Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        truth = truth_of(program, options.python, folder)
        if isinstance(truth, str):
            line = f"{program.stem}: {truth}"
            print(line, file=sys.stderr, flush=True)
            return "", False, line
        plan = plan_of(program, options.python, folder, options)
    wrong = problems_of(plan, truth)
    row = row_of(program.stem, plan, truth, wrong)
    print(row, flush=True)
    return row, bool(wrong), ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--faultline", default=str(ROOT / "build" / "faultline"))
    parser.add_argument("--gpu", default="A100-40GB")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", help="a folder for what each left")
    options = parser.parse_args()
    options.faultline = os.path.abspath(options.faultline)
    chosen = [
        p for p in sorted(PROGRAMS.glob("*.py")) if p.stem != "truth" and (not options.names or p.stem in options.names)
    ]
    with ThreadPoolExecutor(options.jobs) as workers:
        results = list(workers.map(lambda program: measured(program, options), chosen))
    absent = [line for _, _, line in results if line]
    rows = [row for row, _, _ in results if row]
    bad = sum(wrong for _, wrong, _ in results)
    print("\nMiB at the peak, planned / counted (gradients are not all there at each peak):\n")
    print(
        "| program | parameters | gradients | optimizer | needs, MiB | steps | planned in | told |\n|---|---|---|---|---|---|---|---|"
    )
    print("\n".join(rows))
    for line in absent:
        print(f"not run: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
