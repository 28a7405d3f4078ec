#!/usr/bin/env python3
"""Runs every program of examples/run under `faultline run` on this machine's GPU and compares the report with expected.json.

    python3 scripts/device/run_examples.py [--faultline build/faultline] [--keep DIR] [--json FILE] [program ...]

One line per program: whether the report says what it must (rule, cause, confidence, kernel, lines) and, for clean programs, nothing; how long the run took;
how long after the program's end the report was there. A program whose kernel faults is run a second time with --core-dump, where the driver ends it (status -6)
and more must be named: what is different then stands under "core_dump". Exit status 1 if a report is not as expected.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "run"


def missing(needs):
    return [
        name
        for name in needs
        if not (shutil.which(name) if name in ("nvcc", "ninja") else importlib.util.find_spec(name))
    ]


def command(name, wanted, folder):
    if not name.endswith(".cu"):
        return [sys.executable, str(EXAMPLES / name)]
    program = folder / name[:-3]
    subprocess.run(
        [
            "nvcc",
            "-g",
            "-lineinfo",
            *wanted.get("flags", ()),
            "-o",
            str(program),
            str(EXAMPLES / wanted.get("source", name)),
        ],
        check=True,
    )
    return [str(program)]


def first_child(pid):
    try:
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return None


def has_ended(pid):
    try:
        return re.search(r"\) Z ", Path(f"/proc/{pid}/stat").read_text()) is not None
    except OSError:
        return True


def run(faultline, arguments, options, folder, timeout_s):
    """The run's status, its seconds, and the seconds between the program's end and the run's (None: it ended too soon to be seen)."""
    begin = time.monotonic()
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        process = subprocess.Popen(
            [faultline, "run", "-o", str(folder / "run"), *options, "--", *arguments],
            stdout=out,
            stderr=err,
            cwd=EXAMPLES,
        )
        child, child_end = None, None
        while process.poll() is None:
            if time.monotonic() - begin > timeout_s:
                process.kill()
                process.wait()
                return None, time.monotonic() - begin, None
            child = child or first_child(process.pid)
            if child and child_end is None and has_ended(child):
                child_end = time.monotonic()
            time.sleep(0.01)
    end = time.monotonic()
    return process.returncode, end - begin, end - child_end if child_end else None


def places(value):
    """Every file:line that a finding names."""
    found = set()
    if isinstance(value, dict):
        if isinstance(value.get("file"), str) and value.get("line"):
            found.add(f"{os.path.basename(value['file'])}:{value['line']}")
        for part in value.values():
            found |= places(part)
    elif isinstance(value, list):
        for part in value:
            found |= places(part)
    elif isinstance(value, str):
        found |= {
            f"{os.path.basename(file)}:{line}" for file, line in re.findall(r"([\w./-]+\.(?:py|cu|cpp)):(\d+)", value)
        }
    return found


def differences(wanted, report, status):
    wrong = [] if status == wanted["status"] else [f"exit status {status}, not {wanted['status']}"]
    findings = [finding for finding in report["findings"] if finding["severity"] != "note"]
    if "rule" not in wanted:
        return wrong + [f"{finding['rule']} in a clean program: {finding['message'][:100]}" for finding in findings]
    right = [finding for finding in findings if finding["rule"] in wanted["rule"]]
    if not right:
        return wrong + [f"no {' or '.join(wanted['rule'])} among {[finding['rule'] for finding in findings]}"]
    finding = right[0]
    text = json.dumps(finding)
    if finding["confidence"] not in wanted.get("confidence", [finding["confidence"]]):
        wrong.append(f"{finding['confidence']}, not {' or '.join(wanted['confidence'])}")
    if "cause" in wanted and finding.get("cause") != wanted["cause"]:
        wrong.append(f"cause {finding.get('cause')}, not {wanted['cause']}")
    if "kernel" in wanted and not any(part in text for part in wanted["kernel"]):
        wrong.append(f"kernel {' or '.join(wanted['kernel'])} is not named")
    return (
        wrong
        + [f"{place} is not named" for place in wanted["places"] if not places(finding).intersection(place.split("|"))]
        + [
            f"also {extra['rule']}"
            for extra in findings
            if extra["severity"] == "error" and extra["rule"] not in [*wanted["rule"], *wanted.get("also", ())]
        ]
    )


def runs(expected):
    """Every example as it is run: by default, and with what it expects of a core dump."""
    for name, wanted in expected.items():
        dump = wanted.pop("core_dump", None)
        yield name, name, wanted
        if dump:
            yield (
                f"{name} --core-dump",
                name,
                {**wanted, **dump, "options": [*wanted.get("options", []), "--core-dump"]},
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faultline", default=os.environ.get("FAULTLINE", str(ROOT / "build" / "faultline")))
    parser.add_argument("--keep", type=Path, help="keep the runs' folders here")
    parser.add_argument("--json", type=Path, help="write the table here as well")
    parser.add_argument("--timeout", type=float, default=150, help="seconds for one program")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    rows, failed = [], 0
    for label, name, wanted in runs(json.loads((EXAMPLES / "expected.json").read_text())):
        if arguments.programs and name not in arguments.programs:
            continue
        lacking = missing(wanted["needs"])
        if lacking:
            print(f"skipped {'':15} {label}: {', '.join(lacking)} is not here", flush=True)
            continue
        folder = (arguments.keep / label.replace(" ", "") if arguments.keep else Path(tempfile.mkdtemp())).resolve()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        seconds, after = 0.0, None
        try:
            status, seconds, after = run(
                arguments.faultline, command(name, wanted, folder), wanted.get("options", []), folder, arguments.timeout
            )
            report = json.loads((folder / "run" / "report.json").read_text())
            wrong = differences(wanted, report, status)
            first = next((finding["message"] for finding in report["findings"]), "no findings")
        except (OSError, ValueError, KeyError, subprocess.CalledProcessError) as problem:
            wrong, first = (
                [f"{type(problem).__name__}: {problem}"],
                (folder / "stderr").read_text(errors="replace")[-800:] if (folder / "stderr").exists() else "",
            )
        failed += bool(wrong)
        rows.append(
            {
                "program": label,
                "wrong": wrong,
                "seconds": round(seconds, 2),
                "report_seconds": after and round(after, 2),
                "first_finding": first,
            }
        )
        print(
            f"{'WRONG' if wrong else 'ok':7} {seconds:6.1f} s {'-' if after is None else f'{after:.2f} s':>7} {label}: {first[:160]}"
            + "".join(f"\n{'':24}- {line}" for line in wrong),
            flush=True,
        )
        if not arguments.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{len(rows) - failed} of {len(rows)} as expected (columns: the whole run, from the program's end to the report)"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
