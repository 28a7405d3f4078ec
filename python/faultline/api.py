"""faultline.plan(function, gpu="T4"): the verb `plan` for a function of a running Python program.

The verb is run as it is; the program that it starts is a stand-in that asks this process, through a socket, to run the function. For each such request
(the first run, and reruns under changes) this process forks: the child becomes a dry run, calls the function and ends, so nothing here is changed. The child
is watched like a program that is planned: what it writes is kept aside.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from . import _confine
from ._program import find_binary
from .notebook.cells import Cells, running_shell
from .report import page_of, shown_again

_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Plan:
    """What the plan found. `report` is the whole of it: the JSON report of the command line tool."""

    fits: (
        bool | None
    )  # None: no GPU was named, the function ended with an error of its own, or it fits by one end of what is estimated and not by the other
    gpu: str
    capacity_bytes: int
    needed_bytes: int  # context included
    report: dict
    text: str  # the report as the terminal shows it

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return page_of(self.report, (), self.text)


def plan(
    function,
    gpu: str | None = None,
    *,
    vary: str | None = None,
    real: bool = False,
    steps: int | None = None,
    seconds: int = 120,
    try_changes: bool = False,
    allow_writes: bool = False,
    offline: bool = False,
    op_memory: list[str] | tuple[str, ...] = (),
    budget: str | None = None,
) -> Plan:
    """Dry-runs function() on the named GPU ("T4", "24GiB"); report["plan"]["budget"] tells whether it needs more than a budget ("14GiB"). Raises ValueError when the plan could not be made."""
    with tempfile.TemporaryDirectory(prefix="faultline-") as folder:
        address = os.path.join(folder, "socket")
        server = socket.socket(socket.AF_UNIX)
        server.bind(address)
        server.listen(8)
        options = [
            *(["--gpu", gpu] if gpu else []),
            *(["--vary", vary] if vary else []),
            *(["--budget", budget] if budget else []),
            *(["--real"] if real else []),
            *(["--steps", str(steps)] if steps is not None else []),
            "--seconds",
            str(seconds),
            *([] if try_changes or vary else ["--no-try"]),
            *(["--allow-writes"] if allow_writes else []),
            *(["--offline"] if offline else []),
            *(word for told in op_memory for word in ("--op-memory", told)),
        ]
        command = [
            find_binary(),
            "plan",
            "-v",  # there is nobody to ask with it afterwards
            *options,
            "--function",
            *_words_for(function),
            "-o",
            os.path.join(folder, "run"),
            "--",
            sys.executable,
            "-I",  # nothing of the user's folders is imported by it
            "-S",
            str(_HERE / "_stand_in.py"),
            address,
        ]
        told = os.path.join(folder, "told")
        with server, open(told, "ab") as to:  # a file takes whatever is written, a pipe only while somebody reads
            verb = subprocess.Popen(command, stdout=to, stderr=to)
            try:
                _serve(server, verb, function)
            finally:
                if verb.poll() is None:
                    verb.terminate()
                verb.wait()
        problem = _with_arguments(Path(told).read_text(encoding="utf-8", errors="replace"))
        report = Path(folder, "run", "report.json")
        if not report.is_file():
            raise ValueError(
                problem.replace("\0", "").strip().removeprefix("faultline: ") or "the plan could not be made"
            )
        content = json.loads(report.read_text(encoding="utf-8"))
        if (shell := running_shell()) is not None:  # functions of a notebook are told by their cells
            content = Cells(shell).in_report(content)
            problem = shown_again(content, "-v")
        verdict = content.get("plan", {})
        card = verdict.get("gpu") or {}
        undecided = verdict.get("needed_most", 0) > card.get("capacity", 0) > 0
        fits = {
            "fits": True,
            "fits-tightly": None if undecided else True,
            "fits-until": False,
            "does-not-fit": False,
        }.get(verdict.get("verdict"))
        return Plan(fits, card.get("name", ""), card.get("capacity", 0), verdict.get("needed", 0), content, problem)


def _with_arguments(text: str) -> str:
    """Where the text names an option of the command, that is an argument here."""
    for option, argument in (
        ("--real", "real=True"),
        ("--vary NAME", "vary=NAME"),
        ("--steps 0 --seconds 0", "steps=0, seconds=0"),
    ):
        text = text.replace(option, argument)
    return text


def _words_for(function) -> list[str]:
    """What the report calls it: function train at train.py:12."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", None) or type(function).__name__
    place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""
    return ["function", name.strip("<>"), *(["at", place] if place and not place.startswith("<") else [])]


def _serve(server: socket.socket, verb: subprocess.Popen, function) -> None:
    """Until the verb has ended. Whoever asks may be gone by the time of the answer (it was ended): that is its own affair, not the caller's."""
    server.settimeout(0.05)
    children: dict[int, socket.socket] = {}
    try:
        while verb.poll() is None:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                _begin_child(connection, function, children)
            for child in list(children):
                if (status := _status_of(child)) is not None:
                    with children.pop(child) as connection, contextlib.suppress(OSError):
                        connection.sendall(f"{status}\n".encode())
    finally:
        for child, connection in children.items():
            connection.close()
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _begin_child(connection: socket.socket, function, children: dict[int, socket.socket]) -> None:
    connection.settimeout(10)
    with connection.makefile() as lines:
        plan_path = lines.readline().strip()
    connection.settimeout(None)
    if not plan_path:
        return connection.close()
    with (
        warnings.catch_warnings()
    ):  # JAX and Python warn of forks; this child computes nothing that the parent has begun
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        parent, child = os.getpid(), os.fork()
    if child == 0:
        _confine.end_with(parent)
        _become_dry_run(plan_path, function, connection)
    children[child] = connection


def _status_of(child: int) -> int | None:
    """None: it still runs."""
    try:
        done, status = os.waitpid(child, os.WNOHANG)
    except ChildProcessError:  # the caller does not wait for children (SIGCHLD is ignored), or waited for all of them
        return 3
    return os.waitstatus_to_exitcode(status) if done else None


def _be_watched(connection: socket.socket, options: dict) -> None:
    confined = options.get("confined")
    if confined:
        _confine.allow_watching()
    connection.sendall(f"{os.getpid() if confined else ''}\n".encode())
    with connection.makefile() as lines:
        answer = lines.readline().strip()
    if answer != "watched":
        raise OSError(
            f"this process could not be watched, so what the function writes could not be kept aside ({answer}); allow_writes=True plans it all the same"
        )
    if confined:
        try:
            _confine.confine(options["filter"])
        except OSError as problem:
            raise OSError(
                f"the function was not run: what this process has open could not be kept apart from it ({problem})"
            ) from None


def _exit_status(end: SystemExit) -> int:
    """What the interpreter would end with."""
    if end.code is None:
        return 0
    return end.code & 255 if isinstance(end.code, int) else 1


def _become_dry_run(plan_path: str, function, connection: socket.socket) -> None:
    """In the child: never returns."""
    status = 0
    try:
        sys.stdout = open(os.devnull, "w")
        with open(plan_path, encoding="utf-8") as file:
            options = json.load(file)
        _be_watched(connection, options)
        from .plan import await_torch
        from .plan.session.session import current

        if not any(name in sys.modules for name in await_torch.FRAMEWORKS):
            import torch  # noqa: F401 what most functions use
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # threads of the parent's pool are not in the child
        await_torch.watch(options)

        def session():
            return current() or await_torch.begun[-1]

        try:
            function()
        except SystemExit as end:
            if not session().stopped:  # the dry run's own stop
                status = _exit_status(end)
        except BaseException as problem:
            status = 1
            session().note_death(problem, problem.__traceback__)
        session().finish()
    except BaseException:
        traceback.print_exc()
        status = 3
    finally:
        os._exit(status)
