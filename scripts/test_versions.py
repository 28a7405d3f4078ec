#!/usr/bin/env python3
"""Plans with several releases of PyTorch: the tests of the dry run, and every program of scripts/plan_accuracy/programs that needs no further package.

  python scripts/test_versions.py [--versions 2.4.1 2.8.0] [--keep] [--python-env 2.4.1=/path/to/venv] [--interpreter 2.4.1=python3.10] [--faultline build/faultline] [--gpu H200]

Each release is installed into an environment of its own in .cache/versions, which is removed afterwards unless it is to be kept. Prints a table of the planned
peaks, program by release, and ends with status 1 where a test fails or a program cannot be planned. No GPU is used.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "scripts" / "plan_accuracy" / "programs"
TESTS = ("test_dry_run", "test_temporaries", "test_programs_of_many_kinds", "test_truth", "test_releases")
VERSIONS = ("2.1.2", "2.2.2", "2.3.1", "2.4.1", "2.6.0", "2.8.0", "2.11.0", "2.13.0")


def programs() -> list[Path]:
    """Those that are run (the others are what they import), and need nothing but PyTorch."""
    return [
        path
        for path in sorted(PROGRAMS.glob("*.py"))
        if not path.stem.endswith("_model") and "transformers" not in path.read_text()
    ]


def environment(version: str, folder: Path, interpreter: str) -> Path:
    python = folder / "bin" / "python"
    number = tuple(map(int, version.split("+")[0].split(".")[:2]))
    wanted = [f"torch=={version}", "numpy<2" if number < (2, 3) else "numpy", "pytest", "pytest-xdist"]
    if not (folder / "complete").exists():
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *wanted], check=True)
        (folder / "complete").touch()
    return python


def run_tests(python: Path, options) -> str:
    """The last line of pytest, "" where all passed or said why they did not run."""
    paths = [str(ROOT / "tests" / "python" / "plan" / f"{name}.py") for name in TESTS]
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-n",
        str(options.jobs),
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
        *paths,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "FAULTLINE": options.faultline}
    )
    lines = done.stdout.strip().splitlines()
    print("   ", lines[-1] if lines else done.stderr.strip()[-500:], flush=True)
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print("   ", line)
    return "" if done.returncode == 0 else "its tests"


def plan(python: Path, program: Path, options) -> tuple[str, str]:
    """The planned peaks, and why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            options.faultline,
            "plan",
            "--gpu",
            options.gpu,
            "--steps",
            "0",
            "--seconds",
            "0",
            "--no-try",
            "-o",
            f"{folder}/run",
            "--",
            str(python),
            str(program),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        left = [json.loads(path.read_text()) for path in Path(folder, "run").glob("process-*.json")]
    if not left:
        return "–", done.stderr.strip()[-300:] or f"status {done.returncode}"
    found = left[0]
    why = found.get("unsupported") or found.get("unplanned") or found.get("exception")
    if why:
        return "–", str(why)
    return " / ".join(f"{found[what] / (1 << 20):,.1f}" for what in ("peak_allocated", "peak_reserved")), ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--versions", nargs="+", default=list(VERSIONS), metavar="VERSION")
    parser.add_argument("--keep", action="store_true", help="the environments that were made, for the next time")
    parser.add_argument(
        "--python-env",
        action="append",
        default=[],
        metavar="VERSION=PATH",
        help="an environment that has that release, numpy, pytest and pytest-xdist",
    )
    parser.add_argument(
        "--interpreter",
        action="append",
        default=[],
        metavar="VERSION=PYTHON",
        help="the Python for that release's environment, where it is another than this one",
    )
    parser.add_argument("--faultline", default=str(ROOT / "build" / "faultline"))
    parser.add_argument("--gpu", default="H200")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--no-tests", action="store_true", help="the programs alone")
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--no-programs", action="store_true", help="the tests alone")
    options = parser.parse_args()
    options.faultline = os.path.abspath(options.faultline)
    given = dict(pair.split("=", 1) for pair in options.python_env)
    interpreters = dict(pair.split("=", 1) for pair in options.interpreter)
    chosen = programs()
    if options.programs:
        chosen = [path for path in chosen if path.stem in options.programs]
    planned = [] if options.no_programs else chosen
    wrong, table, names = [], {}, {}
    for version in options.versions:
        print(f"PyTorch {version}", flush=True)
        folder = ROOT / ".cache" / "versions" / version
        try:
            if version in given:
                python = Path(given[version]).absolute() / "bin" / "python"
            else:
                python = environment(version, folder, interpreters.get(version, sys.executable))
            asked = "import platform, torch; print(torch.__version__, torch.version.cuda and torch.backends.cudnn.version(), 'Python', platform.python_version())"
            names[version] = subprocess.run(
                [python, "-c", asked], capture_output=True, text=True, check=True
            ).stdout.strip()
        except (subprocess.CalledProcessError, OSError) as problem:
            wrong.append(f"{version}: no environment ({problem})")
            continue
        if not options.no_tests and (failed := run_tests(python, options)):
            wrong.append(f"{version}: {failed}")
        for program in planned:
            peaks, why = plan(python, program, options)
            table[program.stem, version] = peaks
            print(f"    {program.stem}: {why or peaks}", flush=True)
            if why:
                wrong.append(f"{version}: {program.stem}: {why}")
        if not options.keep and version not in given:
            shutil.rmtree(folder, ignore_errors=True)
    there = [version for version in options.versions if version in names]
    print(f"\nPeaks on {options.gpu}, allocated / reserved, MiB:\n")
    print("| program |", " | ".join(there), "|\n|---|" + "---|" * len(there))
    for program in planned:
        print(f"| {program.stem} |", " | ".join(table[program.stem, version] for version in there), "|")
    print()
    for version in there:
        print(f"{version}: {names[version]}")
    for what in wrong:
        print(f"cannot be planned or fails: {what}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
