"""%load_ext faultline.

A cell under %%faultline run or watch is run by IPython itself, as a cell without that line: the line is taken away before the cell is compiled, and the work is done in IPython's events before and
after it. So the cell's exception, output, variables and number are its own, whatever goes wrong here.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
import time

from .._private import private
from ..report import Report, Section
from . import kept_alive, loaded, orders
from .cells import Cells
from .late_recorder import LateRecorder


def load(shell) -> None:
    missing = [
        part
        for part in ("events", "input_transformers_cleanup", "register_magic_function", "user_ns")
        if not hasattr(shell, part)
    ]
    if missing:
        raise RuntimeError(
            "%load_ext faultline needs IPython 7 or later (Jupyter, Colab, VS Code's notebooks, ipython), and this is none of them; "
            "everywhere else faultline.plan(function), faultline.explain(exception) and the command faultline do the same"
        )
    if loaded.extension is None:
        loaded.extension = Extension(shell)


def unload(_shell) -> None:
    if loaded.extension is not None:
        loaded.extension.close()
        loaded.extension = None


class Extension:
    def __init__(self, shell):
        self.shell, self.cells = shell, Cells(shell)
        self.shown = set()  # findings that were told, by fingerprint and count
        self._failed = None  # the last exception that was told of, by what tells it from others, and its report
        self._times = {}
        self._running = None
        self._pid = os.getpid()
        before = _take_left_behind()
        self._folder = None
        self.recorder = LateRecorder()
        self.start_recorder()
        shell.input_transformers_cleanup.append(orders.without_order)
        shell.events.register("pre_run_cell", self._before)
        shell.events.register("post_run_cell", self._after)
        shell.register_magic_function(self._magic, magic_kind="line_cell", magic_name="faultline")
        atexit.register(self.close)
        for report in before:
            _display(report)

    def close(self):
        if self._pid != os.getpid() or self.shell is None:
            return  # a child that was forked
        shell, self.shell = self.shell, None
        atexit.unregister(self.close)
        if orders.without_order in shell.input_transformers_cleanup:
            shell.input_transformers_cleanup.remove(orders.without_order)
        for event, function in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
            try:
                shell.events.unregister(event, function)
            except ValueError:
                pass
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("faultline", None)
        self.recorder.stop()
        self._drop_folder()

    # --- the folder for temporary files: there while something is recorded, and no longer

    def _need_folder(self):
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix=_prefix(os.getpid()))
        return self._folder

    def _drop_folder(self):
        if self._folder is not None and not self.recorder.is_on:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def start_recorder(self, gpu=""):
        if not self.recorder.is_on:
            self.recorder.start(self._need_folder(), gpu)
            self._drop_folder()

    # --- around cells

    def _before(self, info):
        source = getattr(info, "raw_cell", None) or ""
        number = len(self.shell.history_manager.input_hist_parsed)  # that it will have
        self.cells.expect(source, number)
        order = orders.order_above(source)
        if order is None or self._running is not None:
            return
        from .cell_recording import CellRecording
        from .watched_cell import WatchedCell

        try:
            work = {"run": CellRecording, "watch": WatchedCell}[order.verb](self, order, number, source)
            self._running = (info, order, work)
            work.begin()
        except Exception as problem:
            self._running = None
            _say(f"this cell is run without Faultline ({type(problem).__name__}: {problem})")

    def _after(self, result):
        if self._running is None:
            return
        info, order, work = self._running
        if result is not None and getattr(result, "info", info) is not info:
            return  # a cell inside the cell
        self._running = None
        try:
            report = work.end(result)
            self._hand_out(report, order, getattr(result, "error_in_exec", None))
        except Exception as problem:
            _say(f"the cell was run, and there is no report of it ({type(problem).__name__}: {problem})")
        except KeyboardInterrupt:
            _say("interrupted: the cell was run, and there is no report of it")

    def _hand_out(self, report, order, problem=None):
        if problem is not None and report.findings:
            self._failed = (_identity(problem), report)
        _display(report)
        if order.name is not None:
            self.shell.user_ns[order.name] = report

    def report_of(self, problem):
        """What was told of an exception when its cell was run."""
        return self._failed[1] if self._failed is not None and self._failed[0] == _identity(problem) else None

    def times_run(self, source, added):
        """What each run of the same cell left, this one last."""
        self._times.setdefault(source, []).append(added)
        return self._times[source]

    # --- what is told should the kernel end in the middle

    def cell_begins(self, number, source):
        known = {"number": number, "source": source[:2000], "began": time.time(), "cells": self.cells.all()}
        with open(os.path.join(self._need_folder(), "cell.json"), "w", encoding="utf-8", opener=private) as file:
            json.dump(known, file)

    def cell_ended(self):
        try:
            os.unlink(os.path.join(self._need_folder(), "cell.json"))
        except OSError:
            pass
        self._drop_folder()

    # --- the magic itself

    def _magic(self, line, cell=None):
        """Finds the line behind a GPU memory fault: see faultline's docs/notebook.md."""
        from IPython.core.error import UsageError

        try:
            if cell is None:
                return self._line(line.split())
            order = orders.order_of(line)
            if order.verb != "plan":
                raise orders.Misused(f"{orders.BEGIN} {order.verb} stands in the first line of a cell, alone")
            self._plan(order, cell)
        except (orders.Misused, ValueError) as problem:
            raise UsageError(f"faultline: {problem}") from None

    def _line(self, words):
        if words == ["release"]:
            kept_alive.release(self.shell)
        elif words[:1] == ["explain"] and len(words) <= 2:
            from ..explanation import explain

            _display(explain(*words[1:]))
        elif not words:
            _display(self._state())
        else:
            raise orders.Misused(f"%faultline {' '.join(words)} is not understood: {orders.USAGE}")

    def _state(self):
        is_on = self.recorder.is_on
        sentence = "Calls of the CUDA driver are recorded in this kernel." if is_on else ""
        if not is_on:
            sentence = f"Calls of the CUDA driver are not recorded: {self.recorder.why_not}."
        kept = kept_alive.section_of(self.shell, self.cells)
        return Report({}, (Section("Faultline", (sentence, orders.USAGE)), *([kept] if kept else ())))

    def _plan(self, order, cell):
        from .planned_cell import plan_cell

        report = plan_cell(self.shell, self.cells, order, cell)
        self._hand_out(report, order)


def _identity(problem):
    """No reference: that would keep its frames alive."""
    return id(problem), type(problem), str(problem)[:1000]


def _prefix(pid):
    return f"faultline-notebook-{os.getuid()}-{pid}-{_start_of(pid)}-"


def _start_of(pid) -> str:
    """When a process began, in the kernel's ticks; empty: there is none of that number."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _take_left_behind() -> list:
    """Reports of kernels that ended while a cell was recorded; their folders are removed."""
    reports, top = [], tempfile.gettempdir()
    start = f"faultline-notebook-{os.getuid()}-"
    for name in sorted(os.listdir(top)):
        folder = os.path.join(top, name)
        pid, _, rest = name[len(start) :].partition("-") if name.startswith(start) else ("", "", "")
        if not pid.isdigit() or _start_of(pid) == rest.partition("-")[0]:
            continue
        try:
            about = os.lstat(folder)
            if (
                not os.path.isdir(folder)
                or os.path.islink(folder)
                or about.st_uid != os.getuid()
                or about.st_mode & 0o77
            ):
                continue
            reports += _left_behind(folder)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue
    return reports


def _left_behind(folder) -> list:
    from ..explanation import explain_path

    try:
        with open(os.path.join(folder, "cell.json"), encoding="utf-8") as file:
            known = json.load(file)
        number, when = int(known["number"]), time.strftime("%H:%M:%S", time.localtime(float(known["began"])))
        cells = Cells(None, known.get("cells"))
        source = [line for line in str(known.get("source", "")).splitlines() if line.strip()]
    except (OSError, ValueError, TypeError, KeyError):
        return []
    sentences = [
        f"It was begun at {when} under Faultline, and the kernel was restarted, killed or died before its end."
    ]
    if source[1:]:
        sentences.append(f"The cell begins with: {source[1][:100]}")
    content = {}
    try:
        content = explain_path(os.path.join(folder, "run"), cells).content
        content["input"]["path"] = f"cell [{number}]"
        sentences.append("What was recorded until then:")
    except ValueError:
        sentences.append("Nothing of the GPU was recorded until then.")
    head = Section(f"The kernel before this one ended in cell [{number}]", tuple(sentences), is_head=True)
    return [Report(content, (head,))]


def _display(report):
    from IPython.display import display

    _ = report.told  # what could fail is done before it is IPython's, which would show our trouble as the cell's
    display(report)


def _say(sentence):
    print(f"faultline: {sentence}", file=sys.stderr)
