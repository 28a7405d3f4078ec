#!/usr/bin/env python3
"""What `faultline run` costs on this machine's GPU, beside other ways of watching.

    python3 scripts/run_overhead/measure.py [--faultline build/faultline] [--budget 240] [--json FILE]

Two programs (models.py) are timed, in one process per variant. All processes are there at once and take turns, a row of steps each, round after round: whatever else the
machine does meets all of them alike, and each row is compared with the native row of its own round. The number told is the median of these ratios, with its quartiles. Slow
variants sit out most rounds. What does not fit into the budget is said to be unmeasured.
"""

import argparse
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {"mlp": "20-layer MLP step", "gpt": "GPT-2 small step"}


class Variant:
    def __init__(self, name, wrap=(), worker=(), environment=None, recorded=False, every=1):
        self.name, self.wrap, self.worker, self.environment, self.recorded, self.every = (
            name,
            list(wrap),
            list(worker),
            environment or {},
            recorded,
            every,
        )
        self.rows = {program: {} for program in PROGRAMS}  # round -> milliseconds of a step
        self.why_not, self.recording, self.process = "", None, None

    def start(self, arguments):
        self.folder = Path(tempfile.mkdtemp())
        command = [
            *self.wrap,
            *(["-o", str(self.folder / "run"), "--"] if self.recorded else []),
            sys.executable,
            str(HERE / "worker.py"),
            *arguments,
            *self.worker,
        ]
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=open(self.folder / "stderr", "wb"),
                env={**os.environ, **self.environment},
                bufsize=0,
            )
        except OSError as problem:
            self.why_not = str(problem)

    def turn(self, program, number, timeout_s):
        if self.why_not:
            return
        try:
            self.process.stdin.write((program + "\n").encode())
            answer, end = b"", time.monotonic() + timeout_s
            while not (answer.endswith(b"\n") and b'"ms"' in answer):
                if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                    self.why_not = f"no answer within {timeout_s:.0f} s"
                    return self.process.kill()
                part = os.read(self.process.stdout.fileno(), 65536)
                if not part:
                    raise BrokenPipeError
                answer += part
            self.rows[program][number] = json.loads(answer.splitlines()[-1])["ms"]
        except OSError:
            words = (self.folder / "stderr").read_text(errors="replace").strip().splitlines()
            self.why_not = (words or ["it ended without a word"])[-1]

    def end(self):
        if self.process is not None:
            if self.process.poll() is None:
                self.process.stdin.close()
                try:
                    self.process.wait(60)
                except subprocess.TimeoutExpired:
                    self.process.kill()
            if self.recorded:
                self.recording = recording(self.folder / "run")
        shutil.rmtree(self.folder, ignore_errors=True)


def variants(faultline, sanitizer):
    found = [
        Variant("native"),
        Variant("native again (what the noise is)"),
        Variant("run --history off", [faultline, "run", "--history", "off"], recorded=True),
        Variant("run", [faultline, "run"], recorded=True),
        Variant("PyTorch's history, Python stacks", worker=["--history", "python"]),
        Variant("PyTorch's history, all stacks", worker=["--history", "all"]),
        Variant("CUDA_LAUNCH_BLOCKING=1", environment={"CUDA_LAUNCH_BLOCKING": "1"}, every=8),
        Variant("TORCH_CUDA_SANITIZER=1", environment={"TORCH_CUDA_SANITIZER": "1"}, every=30),
    ]
    if sanitizer:
        found.append(
            Variant("compute-sanitizer memcheck", [sanitizer, "--tool", "memcheck", "--print-limit", "1"], every=30)
        )
    return found


def find_sanitizer():
    places = [
        shutil.which("compute-sanitizer"),
        *(
            os.path.join(home, part, "compute-sanitizer")
            for home in (os.environ.get("CUDA_HOME", "/usr/local/cuda"),)
            for part in ("bin", "compute-sanitizer")
        ),
    ]
    return next((place for place in places if place and os.path.exists(place)), None)


def recording(folder):
    """How much a run left behind."""
    traces = sum(path.stat().st_size for path in folder.glob("process-*.faultline"))
    found = {
        "trace_bytes": traces,
        "snapshot_bytes": sum(path.stat().st_size for path in folder.glob("torch-*.pickle")),
    }
    try:
        shown = json.loads((folder / "report.json").read_text())["input"]
        found.update(
            events=shown["events"], lost=shown.get("lost", {}), bytes_per_event=round(traces / shown["events"], 1)
        )
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        found["events"] = None
    return found


def summary(variant, native, program):
    """Median and quartiles of the ratios, the median milliseconds, and how many rows there were."""
    found = sorted(
        ms / native.rows[program][number]
        for number, ms in variant.rows[program].items()
        if number in native.rows[program]
    )
    if not found:
        return None
    quartiles = statistics.quantiles(found, n=4) if len(found) > 3 else [found[0], statistics.median(found), found[-1]]
    return {
        "ratio": statistics.median(found),
        "low": quartiles[0],
        "high": quartiles[2],
        "ms": statistics.median(variant.rows[program].values()),
        "rows": len(found),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--faultline", default=os.environ.get("FAULTLINE", str(HERE.parents[1] / "build" / "faultline"))
    )
    parser.add_argument("--budget", type=float, default=240, help="seconds for everything")
    parser.add_argument("--rounds", type=int, default=200, help="at most")
    parser.add_argument("--device", default="cuda", help="cpu tries the script itself")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    begin = time.monotonic()
    taking_part = variants(os.path.abspath(arguments.faultline), find_sanitizer())
    native = taking_part[0]
    for variant in taking_part:
        variant.start(["--device", arguments.device, *(["--small"] if arguments.device == "cpu" else [])])

    def left():
        return arguments.budget - (time.monotonic() - begin)

    for number in range(-1, arguments.rounds):  # the first round makes the models and warms up: it does not count
        for program in PROGRAMS:
            for variant in taking_part:
                if left() > 10 and (number < 0 or number % variant.every == 0):
                    variant.turn(program, number, max(5, left()))
        if number < 0:
            for variant in taking_part:
                for program in PROGRAMS:
                    variant.rows[program].clear()
        if left() <= 10:
            break
    for variant in taking_part:
        variant.end()
    print(f"{'':36}" + "".join(f"{title + ', ratio to native':44}" for title in PROGRAMS.values()))
    table = []
    for variant in taking_part:
        cells = {program: summary(variant, native, program) for program in PROGRAMS}
        texts = [
            f"{c['ratio']:.3f} ({c['low']:.3f} to {c['high']:.3f}), {c['ms']:.2f} ms, {c['rows']} rows"
            if c
            else "unmeasured"
            for c in cells.values()
        ]
        print(
            f"{variant.name:36}"
            + "".join(f"{text:44}" for text in texts)
            + (f"  {variant.why_not}" if variant.why_not else "")
        )
        table.append({"name": variant.name, "why_not": variant.why_not, "recording": variant.recording, **cells})
    for variant in taking_part:
        if variant.recording:
            print(f"{variant.name}: {json.dumps(variant.recording)}")
    print(f"{len(native.rows['mlp'])} rounds, {time.monotonic() - begin:.0f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
