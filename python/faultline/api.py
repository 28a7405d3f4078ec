"""faultline.plan(function, gpu="T4"): the verb `plan` for a function of a running Python program.

The verb is run as it is; the program that it starts is a stand-in that asks this process, through a socket, to run the function. For each such request
(the first run, and reruns under changes) this process forks: the child becomes a dry run, calls the function and ends, so nothing here is changed. The child
is watched like a program that is planned: what it writes is kept aside.
"""
from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from . import _confine

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Plan:
    """What the plan found. `report` is the whole of it: the JSON report of the command line tool."""

    fits: bool | None          # None: no GPU was named, or the function ended with an error of its own
    gpu: str
    capacity_bytes: int
    needed_bytes: int          # context included
    report: dict
    text: str                  # the report as the terminal shows it

    def __str__(self) -> str:
        return self.text


def find_binary() -> str:
    """The tool: beside this package, in the build tree, or on the PATH."""
    for path in (_HERE / "bin" / "faultline", _HERE / "faultline", _HERE.parent.parent / "build" / "faultline"):
        if path.is_file():
            return str(path)
    found = os.environ.get("FAULTLINE") or shutil.which("faultline")
    if not found:
        raise FileNotFoundError("the faultline program was not found: put it on the PATH, or name it in FAULTLINE")
    return found


def plan(function, gpu: str | None = None, *, vary: str | None = None, real: bool = False, steps: int = 8, seconds: int = 120, try_changes: bool = False,
         allow_writes: bool = False, offline: bool = False) -> Plan:
    """Dry-runs function() on the named GPU ("T4", "24GiB"). Raises ValueError when the plan could not be made."""
    with tempfile.TemporaryDirectory(prefix="faultline-") as folder:
        address = os.path.join(folder, "socket")
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(8)
        options = [*(["--gpu", gpu] if gpu else []), *(["--vary", vary] if vary else []), *(["--real"] if real else []), "--steps", str(steps), "--seconds", str(seconds),
                   *([] if try_changes or vary else ["--no-try"]), *(["--allow-writes"] if allow_writes else []), *(["--offline"] if offline else [])]
        command = [find_binary(), "plan", *options, "-o", os.path.join(folder, "run"), "--", sys.executable, str(_HERE / "_stand_in.py"), address]
        verb = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _serve(server, verb, function)
        out, problem = verb.communicate()
        report = Path(folder, "run", "report.json")
        if not report.is_file():
            raise ValueError(problem.strip().removeprefix("faultline: ") or "the plan could not be made")
        content = json.loads(report.read_text(encoding="utf-8"))
        verdict = content.get("plan", {})
        card = verdict.get("gpu") or {}
        fits = {"fits": True, "fits-tightly": True, "does-not-fit": False}.get(verdict.get("verdict"))
        return Plan(fits, card.get("name", ""), card.get("capacity", 0), verdict.get("needed", 0), content, problem)


def _serve(server: socket.socket, verb: subprocess.Popen, function) -> None:
    server.settimeout(0.05)
    children: dict[int, socket.socket] = {}
    while verb.poll() is None:
        try:
            connection, _ = server.accept()
            with connection.makefile() as lines:
                plan_path = lines.readline().strip()
            child = os.fork()
            if child == 0:
                _become_dry_run(plan_path, function, connection)
            children[child] = connection
        except TimeoutError:
            pass
        for child in list(children):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                connection = children.pop(child)
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
                connection.close()


def _be_watched(connection: socket.socket, options: dict) -> None:
    confined = options.get("confined")
    if confined:
        _confine.allow_watching()
    connection.sendall(f"{os.getpid() if confined else ''}\n".encode())
    with connection.makefile() as lines:
        answer = lines.readline().strip()
    if answer != "watched":
        raise OSError(f"this process could not be watched, so what the function writes could not be kept aside ({answer}); allow_writes=True plans it all the same")
    if confined:
        _confine.confine(options["filter"])


def _become_dry_run(plan_path: str, function, connection: socket.socket) -> None:
    """In the child: never returns."""
    status = 0
    try:
        sys.stdout = open(os.devnull, "w")
        with open(plan_path, encoding="utf-8") as file:
            options = json.load(file)
        _be_watched(connection, options)
        import torch
        torch.set_num_threads(1)  # threads of the parent's pool are not in the child
        from .plan import await_torch, dry_run_session
        await_torch.start(options)
        session = dry_run_session.current()
        try:
            function()
        except SystemExit:
            pass
        except BaseException as problem:
            status = 1
            session.note_death(problem, problem.__traceback__)
        session.finish()
    except BaseException:
        traceback.print_exc()
        status = 3
    finally:
        os._exit(status)
