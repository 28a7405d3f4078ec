#!/usr/bin/env python3
"""How fast `faultline explain` reads a PyTorch memory snapshot, beside the other ways to read one.

    scripts/bench/run.py [--faultline build/faultline] [--torch-python PYTHON] [--write docs/measurements/explain-speed.md]

On a snapshot of 300,000 events and on one of 1 GiB it takes, in turns and with the file in the page cache: the whole process of
`faultline explain FILE --format json`; CPython's pickle.load alone, without the interpreter's start and end; and PyTorch's own
`python -m torch.cuda._memory_viz trace_plot`. Peak memory is the largest resident set of the process. Then the replay benchmark.
What cannot be run is named in its row, and the rest goes on.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile

from measure import Measurement

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PICKLE_LOAD = "pickle.load"

# Leaves at once after the load: freeing the objects is not reading the file.
LOAD = """
import gc, os, pickle, sys, time
if sys.argv[2] == "off":
    gc.disable()
with open(sys.argv[1], "rb") as file:
    start, start_cpu = time.perf_counter(), time.process_time()
    snapshot = pickle.load(file)
    print(time.perf_counter() - start, time.process_time() - start_cpu, flush=True)
os._exit(0)
"""


def snapshot_file(*size):
    """Made in another process, so that this one stays small: a child's peak is never less than what its parent held."""
    made = subprocess.run(
        [sys.executable, os.path.join(HERE, "make_snapshot.py"), *size], stdout=subprocess.PIPE, check=True
    )
    return made.stdout.decode().strip()


def count_events(path):
    """Each event writes this string once."""
    count, rest = 0, b""
    with open(path, "rb") as file:
        while True:
            piece = file.read(1 << 24)
            if not piece:
                return count
            count += (rest + piece).count(b"\x8c\x03N/A\x94")
            rest = piece[-5:]


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        return None, str(error)
    said = (done.stdout if done.returncode == 0 else done.stderr).decode(errors="replace").strip().splitlines()
    line = said[0 if done.returncode == 0 else -1] if said else "exit status %d" % done.returncode
    return (line, None) if done.returncode == 0 else (None, line)


def measurements(args, path, page):
    faultline_trouble = None if os.access(args.faultline, os.X_OK) else "%s is not there" % shown_path(args.faultline)
    return [
        Measurement(
            "faultline explain",
            [args.faultline, "explain", path, "--format", "json"],
            accepted=(0, 1),
            trouble=faultline_trouble,
        ),
        Measurement(PICKLE_LOAD, [sys.executable, "-c", LOAD, path, "on"], says_own=True),
        Measurement(PICKLE_LOAD + ", gc.disable()", [sys.executable, "-c", LOAD, path, "off"], says_own=True),
        Measurement(
            "_memory_viz trace_plot",
            [args.torch_python, "-m", "torch.cuda._memory_viz", "trace_plot", path, "-o", page],
            trouble=args.torch_trouble,
        ),
    ]


def measure_file(args, path, runs):
    rows = []
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        rows = measurements(args, path, os.path.join(folder, "page.html"))
        count = count_events(path)  # also brings the file into the page cache
        for turn in range(runs):
            for row in rows:
                print("%s, run %d of %d: %s" % (os.path.basename(path), turn + 1, runs, row.label), file=sys.stderr)
                row.run(args.timeout)
    return {"events": count, "size_bytes": os.path.getsize(path), "runs": runs, "rows": rows}


def shown_path(path):
    return os.path.relpath(path, ROOT) if os.path.abspath(path).startswith(ROOT + os.sep) else os.path.basename(path)


def shown_bytes(size):
    return "%.2f GiB" % (size / 2**30) if size >= 2**30 else "%.1f MiB" % (size / 2**20)


def table(files):
    lines = [
        (
            "file",
            "program",
            "best s",
            "median s",
            "CPU s",
            "times as fast as " + PICKLE_LOAD,
            "peak memory",
            "peak / file",
        )
    ]
    for file in files:
        base = next(row.best_s for row in file["rows"] if row.label == PICKLE_LOAD)
        name = "%s events, %s" % (format(file["events"], ","), shown_bytes(file["size_bytes"]))
        for row in file["rows"]:
            if row.best_s is None:
                lines.append((name, row.label, row.trouble, "", "", "", "", ""))
            else:
                lines.append(
                    (
                        name,
                        row.label,
                        "%.3f" % row.best_s,
                        "%.3f" % row.median_s,
                        "%.3f" % min(row.cpu_seconds),
                        "%.2f" % (base / row.best_s) if base else "",
                        shown_bytes(row.peak_bytes),
                        "%.2f" % (row.peak_bytes / file["size_bytes"]),
                    )
                )
    return lines


def markdown(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    shown = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]])


def replay_lines(args):
    """Events per second of each replay benchmark."""
    if not os.access(args.replay_bench, os.X_OK):
        return [("benchmark", "events per second"), ("replay", "%s is not there" % shown_path(args.replay_bench))]
    done = subprocess.run(
        [args.replay_bench, "--benchmark_format=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    if done.returncode:
        return [("benchmark", "events per second"), ("replay", "exit status %d" % done.returncode)]
    runs = json.loads(done.stdout)["benchmarks"]
    return [("benchmark", "events per second")] + [
        (
            run["name"],
            format(int(run["items_per_second"]), ",") if "items_per_second" in run else "it does not count events",
        )
        for run in runs
    ]


def cpu_model():
    try:
        with open("/proc/cpuinfo") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown CPU"


def page_of(args, files, speed, replay):
    runs = ", ".join("%d of the file of %s events" % (file["runs"], format(file["events"], ",")) for file in files)
    version, _ = first_line(args.faultline, "--version")
    return """# How fast a snapshot is explained

Made by `scripts/bench/run.py --write docs/measurements/explain-speed.md` on %s.

- %s, %d cores, %s; load average %.1f before the first run
- %s; Python %s; PyTorch %s
- Runs: %s, the programs in turns, file in the page cache.
- `faultline explain`: the whole process, JSON report to nowhere. `pickle.load`: the call alone, without Python's start and end, once with the
  garbage collector as Python sets it and once with it off. `_memory_viz`: the whole process, which loads the file and writes a page for the browser.
- Best and median are wall time; the ratio is of the best. CPU is user and system time together, the least of the runs.
- Peak memory is the process's largest resident set.
- The files are made by `scripts/bench/make_snapshot.py`: a recorded GPT training, its steps repeated, every address as PyTorch's allocator
  gives it, stacks of 28 to 99 frames, byte for byte what CPython's pickler writes.

%s

## Replay

%s
""" % (
        datetime.date.today().isoformat(),
        cpu_model(),
        os.cpu_count(),
        platform.system() + " " + platform.machine(),
        args.load,
        version or "Faultline: not built",
        platform.python_version(),
        args.torch_version or "missing",
        runs,
        speed,
        replay,
    )


def options(description, large_runs):
    """What the benchmarks of snapshots are told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--faultline", default=os.path.join(ROOT, "build", "faultline"), help="the binary (default: build/faultline)"
    )
    parser.add_argument("--torch-python", default=sys.executable, help="a Python that has PyTorch (default: this one)")
    parser.add_argument("--events", default="300000", help="of the first file (default: 300000)")
    parser.add_argument("--bytes", default="1GiB", help="of the second file (default: 1GiB; 0 leaves it out)")
    parser.add_argument("--runs", type=int, default=5, help="of each program on the first file (default: 5)")
    parser.add_argument(
        "--large-runs", type=int, default=large_runs, help=f"on the second file (default: {large_runs})"
    )
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one run (default: 600)")
    parser.add_argument("--write", metavar="PAGE", help="also write the tables as a page")
    return parser


def measured(args, measure):
    """Both files; what the machine and its PyTorch are is noted in the arguments."""
    args.load = os.getloadavg()[0]
    args.torch_version, args.torch_trouble = first_line(
        args.torch_python, "-c", "import torch; print(torch.__version__)"
    )
    files = [measure(args, snapshot_file("--events", args.events), args.runs)]
    if args.bytes != "0":
        files.append(measure(args, snapshot_file("--bytes", args.bytes), args.large_runs))
    return files


def main():
    parser = options("How fast `faultline explain` reads a snapshot, beside the other ways to read one.", 3)
    parser.add_argument(
        "--replay-bench", default=os.path.join(ROOT, "build", "replay_bench"), help="default: build/replay_bench"
    )
    args = parser.parse_args()
    files = measured(args, measure_file)
    speed, replay = markdown(table(files)), markdown(replay_lines(args))
    print(speed, replay, sep="\n\n")
    if args.write:
        with open(args.write, "w") as page:
            page.write(page_of(args, files, speed, replay))


if __name__ == "__main__":
    main()
