#!/usr/bin/env python3
"""Runs every program of tests/corpus/leaks with real PyTorch on this machine's GPU, and compares what `faultline explain` says of its snapshot with the truth.

    python3 scripts/device/leak_corpus.py [--faultline build/faultline] [--jobs N] [--run N] [--keep DIR] [--dry] [program ...]

The truth stands in the program: `# clean` or `# leak` in its first line, `# <- kept` behind each line that makes what stays. A program is a file, or a folder with main.py.
PyTorch is imported once, and each program runs in a fork of that. Each snapshot is judged as it is and without the marks of its steps ("bare", where a leak may become a note);
the first N leaks and clean programs of --run also go through `faultline run`, as processes of their own. One line a program, then the total. Exit status 1 if one is judged wrong.
Snapshots of programs that are judged wrong go to $OUT, packed, where that is set. --dry: by dry runs, on a machine without a GPU.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "corpus" / "leaks"


def programs(names):
    """By name, each with its main file."""
    found = {path.stem: path for path in CORPUS.glob("*.py")} | {
        path.parent.name: path for path in CORPUS.glob("*/main.py")
    }
    return {name: found[name] for name in sorted(found) if not names or name in names}


def truth_of(path):
    """Whether it leaks, and (file, line) of what is kept."""
    files = [path] if path.parent == CORPUS else sorted(path.parent.glob("*.py"))
    kept = {
        (file.name, number)
        for file in files
        for number, text in enumerate(file.read_text().split("\n"), 1)
        if text.endswith("# <- kept")
    }
    return path.read_text().startswith("# leak"), kept


def record(path, snapshot, native):
    """In a fork: the program as Python would run it, and its memory afterwards, while its names still hold what they hold."""
    import torch

    if not torch.cuda.is_available():
        raise SystemExit("PyTorch sees no GPU here")
    sys.argv, sys.path[0] = [str(path)], str(path.parent)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = str(path), __builtins__
    code = compile(path.read_text(), str(path), "exec")
    torch.cuda.init()
    torch.cuda.memory._record_memory_history("all", stacks="all" if native else "python", max_entries=400_000)
    try:
        exec(code, vars(main))
    finally:
        torch.cuda.synchronize()
        torch.cuda.memory._dump_snapshot(str(snapshot))


def fork_for(name, path, folder, native):
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        log = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        record(path, folder / f"{name}.pickle", native)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def record_all(chosen, folder, jobs, timeout_s, native):
    """Name to what went wrong, empty where nothing did."""
    import torch  # once, for all forks
    import torch._dynamo  # noqa: F401 (PyTorch imports it with the first optimizer)

    waiting, running, ended = list(chosen.items()), {}, {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name, path = waiting.pop(0)
            running[fork_for(name, path, folder, name in native)] = (name, time.monotonic())
        time.sleep(0.01)
        for child, (name, begin) in list(running.items()):
            done, status = os.waitpid(child, os.WNOHANG)
            late = time.monotonic() - begin > timeout_s
            if not done and late:
                os.kill(child, 9)
                done, status = os.waitpid(child, 0)
            if done:
                del running[child]
                ended[name] = (
                    f"not over after {timeout_s:.0f} s"
                    if late
                    else last_words(folder / f"{name}.log", os.waitstatus_to_exitcode(status))
                )
    return ended


def last_words(log, status):
    if status == 0:
        return ""
    said = [line for line in log.read_text(errors="replace").split("\n") if line.strip()] if log.exists() else []
    return f"status {status}: {said[-1] if said else 'nothing was said'}"[:200]


def dry_all(chosen, folder, faultline):
    sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "python" / "plan"), str(ROOT / "python")]
    from dry import dry_run

    ended = {}
    for name, path in chosen.items():
        own = folder / f"{name}.dry"
        own.mkdir()
        ran = dry_run(faultline, own, path)
        ended[name] = f"status {ran.status}: {ran.err.strip()[-160:]}" if ran.status else ""
        if ran.traces:
            shutil.move(ran.traces[0], folder / f"{name}.pickle")
    return ended


def explained(faultline, path, form="json"):
    done = subprocess.run(
        [faultline, "explain", str(path), "--format", form], capture_output=True, text=True, timeout=120
    )
    if done.returncode not in (0, 1):
        raise ValueError(f"explain ended with {done.returncode}: {done.stderr.strip()[-160:]}")
    return done.stdout


def without_marks(faultline, path):
    text = re.sub(r"^step .*\n", "", explained(faultline, path, "text-trace"), flags=re.M)
    bare = path.with_suffix(".bare.txt")
    bare.write_text(re.sub(r"^(can .*) steps\b", r"\1", text, flags=re.M))
    return bare


def places(findings):
    return {
        (Path(finding["location"].get("file", "?")).name, finding["location"].get("line", 0)) for finding in findings
    }


def verdict(report, truth, marked):
    """One word for what was said, and what is wrong with it."""
    leaks, kept = truth
    said = [finding for finding in json.loads(report)["findings"] if finding["rule"] == "memory/leak"]
    told = [finding for finding in said if finding["severity"] != "note"]
    word = (
        ("proved " if any(finding["confidence"] == "proved" for finding in told) else "") + "leak"
        if told
        else "note"
        if said
        else "clean"
    )
    show = lambda found: ", ".join(f"{file}:{line}" for file, line in sorted(found)) or "nothing"  # noqa: E731
    if not leaks:
        return word, f"clean, but told: {show(places(told))}" if told else ""
    if marked and places(told) != kept:
        return word, f"told {show(places(told))}, kept at {show(kept)}"
    if not marked and not places(told) <= kept <= places(said):
        return word, f"bare: told {show(places(told))}, noted {show(places(said) - places(told))}, kept at {show(kept)}"
    return word, ""


def judge(name, path, folder, faultline, problem):
    snapshot, truth = folder / f"{name}.pickle", truth_of(path)
    row = {
        "program": name,
        "truth": "leak" if truth[0] else "clean",
        "verdict": "-",
        "bare": "-",
        "wrong": [problem] if problem else [],
    }
    if problem:
        return row
    try:
        row["verdict"], wrong = verdict(explained(faultline, snapshot), truth, True)
        row["bare"], wrong_bare = verdict(explained(faultline, without_marks(faultline, snapshot)), truth, False)
        row["wrong"] = [one for one in (wrong, wrong_bare) if one]
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
        row["wrong"] = [f"{type(problem).__name__}: {problem}"[:200]]
    return row


def run_whole(name, path, folder, faultline):
    """Through `faultline run`."""
    truth = truth_of(path)
    row = {"program": f"run {name}", "truth": "leak" if truth[0] else "clean", "verdict": "-", "bare": "-", "wrong": []}
    try:
        kept = folder / f"{name}.run"
        done = subprocess.run(
            [faultline, "run", "-o", str(kept), "--format", "json", "--", sys.executable, str(path)],
            capture_output=True,
            text=True,
            timeout=150,
            cwd=folder,
        )
        if not (kept / "report.json").exists():
            raise ValueError(f"no report; status {done.returncode}: {done.stderr.strip()[-160:]}")
        row["verdict"], wrong = verdict((kept / "report.json").read_text(), truth, True)
        row["wrong"] = [wrong] if wrong else []
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
        row["wrong"] = [f"{type(problem).__name__}: {problem}"[:200]]
    return row


def keep_wrong(rows, folder):
    """The snapshots that are judged wrong, with what was said, as one packed file."""
    wrong = [row for row in rows if row["wrong"]]
    if not wrong or not os.environ.get("OUT"):
        return
    with tarfile.open(Path(os.environ["OUT"]) / "leak_corpus_wrong.tar.gz", "w:gz") as packed:
        for row in wrong:
            name = row["program"]
            for path in (
                [folder / f"{name[4:]}.run"]
                if name.startswith("run ")
                else [folder / f"{name}.pickle", folder / f"{name}.log"]
            ):
                if path.exists():
                    packed.add(path, path.name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--faultline", default=os.environ.get("FAULTLINE", str(ROOT / "build" / "faultline")))
    parser.add_argument(
        "--jobs", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)), help="programs at a time"
    )
    parser.add_argument(
        "--run",
        type=int,
        default=3,
        metavar="N",
        help="so many leaks and so many clean programs through `faultline run` as well",
    )
    parser.add_argument(
        "--native", type=int, default=4, metavar="N", help="every so many programs with native frames too"
    )
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    parser.add_argument("--dry", action="store_true", help="by dry runs, without a GPU")
    parser.add_argument(
        "--keep",
        type=Path,
        help="keep the snapshots here, and judge those that are here already without running their programs again",
    )
    parser.add_argument("--json", type=Path, help="write the table here as well")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    faultline, chosen, begin = str(Path(arguments.faultline).resolve()), programs(arguments.programs), time.monotonic()
    if not Path(faultline).exists():
        raise SystemExit(f"{faultline} is not there: run `make build`, or name it with --faultline")
    with tempfile.TemporaryDirectory() as name:
        folder = (arguments.keep or Path(name)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        old = {name: "" for name in chosen if (folder / f"{name}.pickle").exists()}
        new = {name: path for name, path in chosen.items() if name not in old}
        native = set(list(chosen)[:: arguments.native]) if arguments.native else set()
        ended = old | (
            dry_all(new, folder, faultline)
            if arguments.dry
            else record_all(new, folder, arguments.jobs, arguments.timeout, native)
            if new
            else {}
        )
        recorded = time.monotonic() - begin
        leaky = [name for name in chosen if truth_of(chosen[name])[0]]
        whole = (
            []
            if arguments.dry
            else leaky[: arguments.run] + [name for name in chosen if name not in leaky][: arguments.run]
        )
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            first = pool.map(lambda name: judge(name, chosen[name], folder, faultline, ended[name]), chosen)
            second = pool.map(lambda name: run_whole(name, chosen[name], folder, faultline), whole)
            rows = [*first, *second]
        keep_wrong(rows, folder)
    print(f"{'':6} {'program':44} {'truth':6} {'verdict':12} {'bare':12}")
    for row in rows:
        print(
            f"{'WRONG' if row['wrong'] else 'agree':6} {row['program']:44} {row['truth']:6} {row['verdict']:12} {row['bare']:12} {' '.join('; '.join(row['wrong']).split())}".rstrip()
        )
    agree = sum(not row["wrong"] for row in rows)
    print(
        f"{agree} of {len(rows)} agree, in {time.monotonic() - begin:.0f} s ({recorded:.0f} s of it to run the programs)"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(0 if agree == len(rows) else 1)


if __name__ == "__main__":
    main()
