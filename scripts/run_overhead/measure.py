#!/usr/bin/env python3
"""What `faultline run` costs on this machine's GPU, beside other ways of watching.

    python3 scripts/run_overhead/measure.py [--faultline build/faultline] [--budget 340] [--json FILE]

Two programs (models.py) are timed in a process per variant. The variants that matter take turns, round after round, so that a drift of the machine meets
all of them; each is compared with the native run of its own round. The slow ones run once; rounds after the second are of Faultline's own variants alone.
What does not fit into the budget is said to be unmeasured.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = {"gpt": "GPT-2 small step", "mlp": "20-layer MLP step"}


class Variant:
    def __init__(self, name, wrap=(), worker=(), environment=None, recorded=False):
        self.name, self.wrap, self.worker, self.environment, self.recorded = name, list(wrap), list(worker), environment or {}, recorded
        self.times = {program: {} for program in PROGRAMS}  # round -> milliseconds
        self.why_not = ""
        self.recording = None


def variants(faultline, sanitizer):
    turns = [Variant("native"),
             Variant("run --history off", [faultline, "run", "--history", "off"], recorded=True),
             Variant("run", [faultline, "run"], recorded=True),
             Variant("PyTorch's history, Python stacks", worker=["--history", "python"]),
             Variant("PyTorch's history, all stacks", worker=["--history", "all"])]
    once = [Variant("CUDA_LAUNCH_BLOCKING=1", environment={"CUDA_LAUNCH_BLOCKING": "1"}),
            Variant("TORCH_CUDA_SANITIZER=1", environment={"TORCH_CUDA_SANITIZER": "1"})]
    if sanitizer:
        once.append(Variant("compute-sanitizer memcheck", [sanitizer, "--tool", "memcheck", "--print-limit", "1"]))
    return turns, once


def find_sanitizer():
    places = [shutil.which("compute-sanitizer"), *(os.path.join(home, part, "compute-sanitizer") for home in (os.environ.get("CUDA_HOME", "/usr/local/cuda"),) for part in ("bin", "compute-sanitizer"))]
    return next((place for place in places if place and os.path.exists(place)), None)


def run(variant, number, worker, timeout_s):
    folder = Path(tempfile.mkdtemp())
    command = [*variant.wrap, *(["-o", str(folder / "run"), "--"] if variant.recorded else []), sys.executable, str(HERE / "worker.py"), *worker, *variant.worker]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env={**os.environ, **variant.environment})
        found = json.loads([line for line in done.stdout.splitlines() if line.startswith("{")][-1])
        for program, numbers in found.items():
            variant.times[program][number] = numbers["median_ms"]
        if variant.recorded:
            variant.recording = recording(folder / "run")
    except subprocess.TimeoutExpired:
        variant.why_not = f"took more than {timeout_s:.0f} s"
    except OSError as problem:
        variant.why_not = str(problem)
    except (IndexError, ValueError):  # it told nothing: its last words say why
        variant.why_not = f"status {done.returncode}: " + (done.stderr.strip().splitlines() or ["without a word"])[-1]
    shutil.rmtree(folder, ignore_errors=True)


def recording(folder):
    """How much a run left behind."""
    traces = sum(path.stat().st_size for path in folder.glob("process-*.faultline"))
    found = {"trace_bytes": traces, "snapshot_bytes": sum(path.stat().st_size for path in folder.glob("torch-*.pickle"))}
    try:
        shown = json.loads((folder / "report.json").read_text())["input"]
        found.update(events=shown["events"], lost=shown.get("lost", {}), bytes_per_event=round(traces / shown["events"], 1))
    except (OSError, ValueError, KeyError, ZeroDivisionError):
        found["events"] = None
    return found


def ratios(variant, native, program):
    return [time_ms / native.times[program][number] for number, time_ms in variant.times[program].items() if number in native.times[program]]


def cell(variant, native, program):
    found = ratios(variant, native, program)
    if not found:
        return "unmeasured"
    between = f" ({min(found):.3f} to {max(found):.3f})" if len(found) > 1 else ""
    return f"{statistics.median(variant.times[program].values()):.2f} ms, {statistics.median(found):.3f}{between}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faultline", default=os.environ.get("FAULTLINE", str(HERE.parents[1] / "build" / "faultline")))
    parser.add_argument("--budget", type=float, default=340, help="seconds for everything")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.5, help="of steps, per program and process")
    parser.add_argument("--device", default="cuda", help="cpu tries the script itself")
    parser.add_argument("--only", default="", help="names of variants, separated by commas; native is always among them")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    begin = time.monotonic()
    turns, once = variants(os.path.abspath(arguments.faultline), find_sanitizer())
    if arguments.only:
        chosen = {"native", *(name.strip() for name in arguments.only.split(","))}
        turns, once = [v for v in turns if v.name in chosen], [v for v in once if v.name in chosen]
    worker = ["--seconds", str(arguments.seconds), "--device", arguments.device, *(["--small"] if arguments.device == "cpu" else [])]
    native = turns[0]

    def left():
        return arguments.budget - (time.monotonic() - begin)

    def one_round(number, taking_part):
        for variant in taking_part:
            if not variant.why_not and left() > 5:
                run(variant, number, worker, min(120, left()))
    one_round(0, turns)
    one_round(1, turns)
    round_s = (time.monotonic() - begin) / 2
    for variant in once:
        if left() > 30:
            run(variant, 0, [*worker, "--seconds", "1"], min(110, left()))
        else:
            variant.why_not = "no time was left"
    for number in range(2, arguments.rounds):
        if left() > round_s * 0.6:
            one_round(number, turns[:3])
    print(f"{'':36}" + "".join(f"{title + ', ratio to native':44}" for title in PROGRAMS.values()))
    for variant in turns + once:
        print(f"{variant.name:36}" + "".join(f"{cell(variant, native, program):44}" for program in PROGRAMS) + (f"  {variant.why_not}" if variant.why_not else ""))
    for variant in turns:
        if variant.recording:
            print(f"{variant.name}: {json.dumps(variant.recording)}")
    print(f"{len(native.times['mlp'])} rounds, {time.monotonic() - begin:.0f} s")
    table = {"variants": [{"name": v.name, "why_not": v.why_not, "recording": v.recording,
                           **{program: {"milliseconds": list(v.times[program].values()), "ratios": ratios(v, native, program)} for program in PROGRAMS}} for v in turns + once]}
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=1) + "\n")
    else:
        print(json.dumps(table))


if __name__ == "__main__":
    main()
