"""Runs a piece of a program as a dry run, without the verb: an interpreter that has PyTorch already, the dry run's own options, and what it left."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from common import ROOT

sys.path.insert(0, str(ROOT / "python"))
from faultline.plan.session.summary import wrong_in  # noqa: E402

T4 = {
    "name": "Tesla T4",
    "capacity_bytes": 15828320256,
    "context_bytes": 640 << 20,
    "compute_capability": [7, 5],
    "multi_processor_count": 40,
    "max_threads_per_multi_processor": 1024,
}
H200 = {
    "name": "NVIDIA H200",
    "capacity_bytes": 150109880320,
    "context_bytes": 640 << 20,
    "compute_capability": [9, 0],
    "multi_processor_count": 132,
    "max_threads_per_multi_processor": 2048,
}


class Ran:
    def __init__(self, folder: Path, process: subprocess.CompletedProcess, binary: str):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr
        summaries = sorted(folder.glob("process-*.json"))
        self.summaries = [json.loads(summary.read_text()) for summary in summaries]
        assert [wrong for summary in self.summaries for wrong in wrong_in(summary)] == []
        self.summary = self.summaries[0] if summaries else None
        self.traces = sorted(folder.glob("process-*.faultline"))
        self._binary = binary

    def report(self) -> dict:
        """What `faultline explain` says of the trace."""
        done = subprocess.run(
            [self._binary, "explain", str(self.traces[0]), "--format", "json"], capture_output=True, text=True
        )
        assert done.returncode in (0, 1), done.stderr
        return json.loads(done.stdout)

    def notes(self) -> list:
        """What the dry run had to assume or leave out: properties of the trace, which are plain text in it."""
        return self.notes_of(self.traces[0])

    def notes_of(self, trace: Path) -> list:
        found = re.findall(rb'\{"kind": "[^"]*", "text": .*?"count": \d+\}', trace.read_bytes(), re.DOTALL)
        return [json.loads(note) for note in found]

    def rules(self) -> set:
        return {finding["rule"] for finding in self.report()["findings"] if finding["severity"] != "note"}


@functools.cache
def interpreter_with(framework: str) -> str | None:
    """The Python that has it: this one, or the one that FAULTLINE_JAX_PYTHON or FAULTLINE_TENSORFLOW_PYTHON names; None: there is none."""
    if framework == "torch":
        return sys.executable
    python = os.environ.get(f"FAULTLINE_{framework.upper()}_PYTHON") or sys.executable
    found = subprocess.run(
        [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({framework!r}) is None)"]
    )
    return python if found.returncode == 0 else None


@functools.cache
def warm_interpreter(framework: str = "torch") -> subprocess.Popen:
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "MALLOC_MMAP_THRESHOLD_": "65536"}
    return subprocess.Popen(
        [interpreter_with(framework), str(Path(__file__).with_name("warm.py")), framework],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def dry_run(
    binary: str,
    folder: Path,
    program: str | Path,
    *arguments,
    gpu=T4,
    cold=False,
    framework="torch",
    variables=None,
    **options,
) -> Ran:
    """`cold`: in an interpreter of its own, as Faultline starts it."""
    if not isinstance(program, Path):
        script = folder / "program.py"
        script.write_text(textwrap.dedent(program))
        program = script
    left = folder / "left"
    left.mkdir()
    plan = {
        "folder": str(left),
        "library": str(Path(binary).parent / "libfaultline_dryrun.so"),
        "gpu": gpu,
        "overcommit": False,
        "real": False,
        "steps": 0,
        "seconds": 0,
        "changes": {},
        "vary": None,
        **options,
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    command = [str(program), *map(str, arguments)]
    environment = {**os.environ, "FAULTLINE_PLAN": str(folder / "plan.json"), **(variables or {})}
    if cold:
        path = os.pathsep.join([str(ROOT / "python/faultline/_inject"), os.environ.get("PYTHONPATH", "")])
        environment.update(PYTHONPATH=path, MALLOC_MMAP_THRESHOLD_="65536")
        return Ran(
            left,
            subprocess.run(
                [interpreter_with(framework), *command], capture_output=True, text=True, env=environment, cwd=folder
            ),
            binary,
        )
    out, err = folder / "standard-output", folder / "standard-error"
    server = warm_interpreter(framework)
    print(
        json.dumps(
            {"command": command, "folder": str(folder), "environment": environment, "out": str(out), "err": str(err)}
        ),
        file=server.stdin,
        flush=True,
    )
    status = int(server.stdout.readline())
    return Ran(left, subprocess.CompletedProcess(command, status, out.read_text(), err.read_text()), binary)
