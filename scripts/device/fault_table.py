#!/usr/bin/env python3
"""Does a program that faults fare under `faultline run` as without it? And what does the report name?

    python3 scripts/device/fault_table.py [--faultline build/faultline] [--json FILE] [--keep DIR] [--workers 4] [program ...]

Every fault of faults.cu and faults.py, plain, under `run`, `run --core-dump` and `run --again`. Standard output, standard error (the program's own, kept apart
from Faultline's) and status of `run` and `run --again` must be those of the plain program; with `--core-dump` the driver ends the program, which is
told and not compared. Prints a table in Markdown. Exit status 1 if `run` or `run --again` changed anything, or a plain program did not fault. Needs a GPU, nvcc, python3 with PyTorch.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MODES = {"plain": None, "run": [], "core-dump": ["--core-dump"], "again": ["--again"]}
KERNELS = {
    "assert": "checked",
    "misaligned": "packed",
    "illegal": "strayed",
    "shared": "shared_overrun",
    "trap": "trapped",
    "managed": "before_start",
    "index": "index",
    "embedding": "ndex|gather|embedding",
}
CUDA = ["assert", "misaligned", "illegal", "shared", "trap", "managed", "well"]
TORCH = ["index", "embedding", "well"]


def lines_with_faults(path):
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for kind in re.findall(r"fault: (\w+)", line):
            found[kind] = f"{path.name}:{number}"
    return found


def comparable(text):
    """Addresses and process numbers differ from run to run; threads print in any order."""
    return sorted(re.sub(r"0x[0-9a-f]+|\bpid \d+", "X", text).splitlines())


def places(value):
    if isinstance(value, dict):
        own = (
            {f"{os.path.basename(value['file'])}:{value['line']}"}
            if isinstance(value.get("file"), str) and value.get("line")
            else set()
        )
        return own.union(*(places(part) for part in value.values()), set())
    return set().union(*(places(part) for part in value)) if isinstance(value, list) else set()


def what_is_named(folder, kind, where):
    """The first finding in a few words, and whether kernel and line are among what it names."""
    try:
        report = json.loads((folder / "report.json").read_text())
    except (OSError, ValueError):
        return {"says": "no report", "kernel": False, "line": False}
    findings = [finding for finding in report["findings"] if finding["severity"] == "error"]
    if not findings:
        return {"says": "nothing", "kernel": False, "line": False}
    first = findings[0]
    place = (
        f"{os.path.basename(first['location']['file'] or '')}:{first['location']['line']}"
        if first.get("location")
        else ""
    )
    return {
        "says": f"{first['rule']} ({first['confidence']}) {place}",
        "message": first["message"],
        "kernel": re.search(KERNELS.get(kind, "^$"), json.dumps(first)) is not None,
        "line": where in places(first),
        "candidates": sum(item["role"] == "candidate" for item in first["related"]),
    }


def run(faultline, name, command, mode, folder, timeout_s):
    folder.mkdir(parents=True)
    errors = folder / "program-stderr"
    apart = ["sh", "-c", '[ -e "$0" ] || exec 2> "$0"; exec "$@"', str(errors), *command]
    whole = apart if MODES[mode] is None else [faultline, "run", "-o", str(folder / "run"), *MODES[mode], "--", *apart]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            whole, capture_output=True, text=True, errors="replace", timeout=timeout_s, stdin=subprocess.DEVNULL
        )
        out, status, ours = done.stdout, done.returncode, done.stderr
    except subprocess.TimeoutExpired as late:
        out, status, ours = (late.stdout or b"").decode(errors="replace"), "timeout", ""
    (folder / "faultline-stderr").write_text(ours)
    return {
        "program": name,
        "mode": mode,
        "status": status,
        "seconds": round(time.monotonic() - begin, 2),
        "stdout": out,
        "stderr": errors.read_text(errors="replace") if errors.exists() else "",
    }


def changed(plain, other):
    found = [] if other["status"] == plain["status"] else [f"status {other['status']}, not {plain['status']}"]
    return found + [
        f"{part} differs" for part in ("stdout", "stderr") if comparable(other[part]) != comparable(plain[part])
    ]


def last_line(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:90].replace("|", "\\|") if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faultline", default=os.environ.get("FAULTLINE", str(ROOT / "build" / "faultline")))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the runs' folders here, a new folder")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--timeout", type=float, default=100, help="seconds for one run")
    parser.add_argument("programs", nargs="*", help="for example cuda-assert torch-index; all unless told")
    arguments = parser.parse_args()
    base = arguments.keep.resolve() if arguments.keep else Path(tempfile.mkdtemp())
    base.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    programs = {f"torch-{kind}": (kind, [sys.executable, str(HERE / "faults.py"), kind]) for kind in TORCH}
    if shutil.which("nvcc"):
        subprocess.run(
            ["nvcc", "-g", "-lineinfo", "-arch=native", "-o", str(base / "faults"), str(HERE / "faults.cu")], check=True
        )
        programs = {**{f"cuda-{kind}": (kind, [str(base / "faults"), kind]) for kind in CUDA}, **programs}
    else:
        print("nvcc is not here: the CUDA programs are left out", file=sys.stderr)
    programs = {name: what for name, what in programs.items() if not arguments.programs or name in arguments.programs}
    where = {**lines_with_faults(HERE / "faults.cu"), **lines_with_faults(HERE / "faults.py")}
    with concurrent.futures.ThreadPoolExecutor(arguments.workers) as pool:
        jobs = {
            (name, mode): pool.submit(
                run, arguments.faultline, name, command, mode, base / f"{name}-{mode}", arguments.timeout
            )
            for name, (kind, command) in programs.items()
            for mode in MODES
        }
        rows = {key: job.result() for key, job in jobs.items()}

    failed = 0
    for (name, mode), row in rows.items():
        if mode == "plain" and (row["status"] == 0) != (programs[name][0] == "well"):
            print(
                f"{name} ended with status {row['status']} without Faultline: there is nothing to compare",
                file=sys.stderr,
            )
            failed += 1
    print(
        "| program | how | status | last line of its output / of its errors | against plain | the report names | kernel | line |\n|---|---|---|---|---|---|---|---|"
    )
    for (name, mode), row in rows.items():
        kind = programs[name][0]
        if mode != "plain":
            row["changed"] = changed(rows[name, "plain"], row)
            row["report"] = what_is_named(base / f"{name}-{mode}" / "run", kind, where.get(kind, ""))
            failed += bool(row["changed"]) and mode != "core-dump"
        report = row.get("report", {"says": "", "kernel": False, "line": False})
        told = (
            (report["says"] + (f", {report['candidates']} candidates" if report.get("candidates") else ""))
            if mode != "plain"
            else ""
        )
        marks = [
            "yes" if report[part] else "no" if kind != "well" and mode != "plain" else "" for part in ("kernel", "line")
        ]
        against = "" if mode == "plain" else "; ".join(row["changed"]) or "same"
        print(
            f"| {name} | {mode} | {row['status']} | {last_line(row['stdout'])} / {last_line(row['stderr'])} | {against} | {told} | {marks[0]} | {marks[1]} |",
            flush=True,
        )
    print(f"\n{len(rows)} runs in {time.monotonic() - begin:.0f} s; {failed} not as they must be.")
    if arguments.json:
        arguments.json.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    if not arguments.keep:
        shutil.rmtree(base, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
