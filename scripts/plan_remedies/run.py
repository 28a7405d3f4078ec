#!/usr/bin/env python3
"""Plans programs that do not fit, applies every ✔ as it is printed, and plans the result again at full length.

    scripts/plan_remedies/run.py FAULTLINE [PYTHON] [--only NAME …] [--results FILE] [--reports FOLDER] [--try] [--write]

FAULTLINE is the binary, PYTHON an interpreter that has what the programs import (without it they are left out). Each program says its GPU in its first line, and what it is given in its second where that begins with "# arguments:". A ✔ that cannot be applied by itself
(a change in words, a larger number of ranks) is counted and not planned again. --reports keeps each first report
(faultline explain shows it). --write makes docs/measurements/plan-remedies.md of the results.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/measurements/plan-remedies.md"
SETTING = "PYTORCH_CUDA_ALLOC_CONF="


def plan(faultline, gpu, command, folder, *more, environment=None, keep=None):
    """The report's plan, seconds on the clock, and seconds of the processors, its children's too. keep: a file for the report."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [faultline, "plan", "--gpu", gpu, *more, "--format", "json", "-o", str(folder / f"plan-{time.monotonic_ns()}"), "--", *command],
        capture_output=True, text=True, cwd=folder, env={**os.environ, **(environment or {})},
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    try:
        report = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{command}: no report\n{done.stderr}")
    if keep is not None:
        keep.write_text(done.stdout)
    return report["plan"], time.monotonic() - began, cpu


def ticks(found, command):
    """Each ✔: what it is, its diff, its command, its environment."""
    vary = found.get("vary") or {}
    if vary.get("largest_fitting") and found["verdict"] != "fits":
        label = f"{vary['name']} = {vary['largest_fitting']}"
        if vary.get("batches"):
            label += f" ({vary['batches']} batches of {vary['batch']})"
        yield label, vary.get("diff", ""), vary.get("command") or command, {}
    for change in found.get("changes", ()):
        if not (change["tried"] and change["fits"]):
            continue
        what = change["what"]
        environment = {}
        if SETTING in what:
            environment = {"PYTORCH_CUDA_ALLOC_CONF": what.partition(SETTING)[2].split()[0]}
        yield change.get("label") or what, change.get("diff", ""), command, environment


def apply(diff, folder):
    done = subprocess.run(
        ["patch", "-p1", "--no-backup-if-mismatch"], input=diff, text=True, cwd=folder, capture_output=True
    )
    return done.returncode == 0


def of_program(faultline, python, program, try_all, reports):
    first, second = program.read_text().splitlines()[:2]
    gpu = first.partition("gpu:")[2].strip()
    row = {"program": program.stem, "gpu": gpu, "about": ast.get_docstring(ast.parse(program.read_text())), "ticks": []}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copy(program, folder / "train.py")
        command = [python, "train.py", *second.partition("# arguments:")[2].split()]
        keep = reports / f"{program.stem}.json" if reports else None
        found, row["seconds"], row["cpu"] = plan(
            faultline, gpu, command, folder, *(["--try"] if try_all else []), keep=keep
        )
        row |= {
            "verdict": found["verdict"],
            "needed": max(found["needed"], found.get("needed_at_end", 0)),
            "skipped": found.get("changes_skipped", ""),
        }
        for number, (label, diff, then, environment) in enumerate(ticks(found, command)):
            tick = {"label": label, "again": None}
            row["ticks"].append(tick)
            if not diff and then == command and not environment:
                continue  # in words
            copy = folder / f"tick-{number}"
            copy.mkdir()
            shutil.copy(program, copy / "train.py")
            if diff and not apply(diff, copy):
                tick["again"] = "the diff does not apply"
                continue
            again, tick["seconds"], tick["cpu"] = plan(
                faultline, gpu, then, copy, "--no-try", "--steps", "0", "--seconds", "0", environment=environment
            )
            tick |= {
                "again": again["verdict"],
                "needed": max(again["needed"], again.get("needed_at_end", 0)),
                "why": again.get("exception") or again.get("unplanned"),
            }
            print(f"    {label}: {tick['again']}", flush=True)
    return row


def gib(size):
    return f"{size / 2**30:.2f} GiB"


def page(rows):
    tried = [tick for row in rows for tick in row["ticks"]]
    again = [tick for tick in tried if tick["again"] is not None]
    failed = [tick for tick in again if tick["again"] not in ("fits", "fits-tightly")]
    text = [
        "# Remedies, applied as they are printed",
        "",
        f"`scripts/plan_remedies/run.py` plans programs that do not fit ({len(rows)} of the {len(list((HERE / 'programs').glob('*.py')))} in its folder are here), applies each ✔ as it is printed (the diff with `patch`, the command, the setting) and plans the result again at full length "
        f"(`--no-try --steps 0 --seconds 0`). {len(tried)} ✔ were printed; {len(again)} could be applied by themselves, the others are instructions in words; {len(failed)} of those applied did not fit. Of a batch the diff has the one that is accumulated, where it changes the loop.",
        "",
        "Seconds are those of the processors, and on the clock, of two cores that were shared with other work.",
        "",
        "| program | GPU | needs | ✔ | planned again | first plan: processors, clock |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        first = f"| {row['program']}: {row['about']} | {row['gpu']} | {gib(row['needed'])} ({row['verdict']}) "
        seconds = f"| {row['cpu']:.0f} s, {row['seconds']:.0f} s |"
        if not row["ticks"]:
            text.append(f"{first}| {row['skipped'] or 'none'} | {seconds}")
        for tick in row["ticks"]:
            result = (
                "not applied: in words"
                if tick["again"] is None
                else tick["again"] + (f", {gib(tick['needed'])}" if tick.get("needed") else "")
            )
            text.append(f"{first}| {tick['label']} | {result} {seconds}")
            first, seconds = "| | | ", "| |"
    return "\n".join(text) + "\n"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("faultline")
    options.add_argument("python", nargs="?", default=sys.executable)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--results", type=Path)
    options.add_argument("--reports", type=Path)
    options.add_argument("--try", dest="try_all", action="store_true", help="as long as it takes: on a busy machine")
    options.add_argument("--write", action="store_true")
    asked = options.parse_args()
    if asked.reports:
        asked.reports.mkdir(parents=True, exist_ok=True)
    rows = json.loads(asked.results.read_text()) if asked.results and asked.results.exists() else []
    for program in sorted((HERE / "programs").glob("*.py")):
        if any(row["program"] == program.stem for row in rows) or asked.only and program.stem not in asked.only:
            continue
        print(program.stem, flush=True)
        rows.append(of_program(os.path.abspath(asked.faultline), asked.python, program, asked.try_all, asked.reports))
        print(f"  {rows[-1]['verdict']}, {rows[-1]['seconds']:.0f} s", flush=True)
        if asked.results:
            asked.results.write_text(json.dumps(rows, indent=1))
    if asked.write:
        PAGE.write_text(page(sorted(rows, key=lambda row: row["program"])))
    failed = [tick for row in rows for tick in row["ticks"] if tick["again"] not in (None, "fits", "fits-tightly")]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
