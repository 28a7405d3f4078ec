"""%%faultline run: a cell recorded as `faultline run` records a program, as far as that can be done in a kernel that runs already."""

from __future__ import annotations

import glob
import os
import pickle
import re
import shutil
import sys
import tempfile
import time

from ..explanation import explain_exception, explain_path
from ..report import Report, Section, call
from ..rule_names import SHOWS_HOLDERS
from ..run.exceptions import kind_of
from ..run.jax_looks import failure_profile_name
from ..run.process import Process, describe, words_of
from .kept_alive import section_of
from .torch_history import TorchHistory
from .watched_cell import why_nothing


class CellRecording:
    def __init__(self, session, order, number, source):
        self._session, self._order, self._number, self._source = session, order, number, source
        self._name = f"cell [{number}]"
        self._history = TorchHistory()
        self._began_ns = time.time_ns()
        self._sources = {"torch": False, "jax": False}
        self._why_no_page = ""

    def begin(self):
        self._session.start_recorder(self._order.gpu)
        self._session.cell_begins(self._number, self._source)
        self._session.recorder.mark(self._name, begins=True)
        self._history.begin()

    def end(self, result):
        report = self._told(result)
        if self._why_no_page:
            no_page = Section(f"The page {self._order.page} was not written", (self._why_no_page,))
            return Report(report.content, (*report.sections, no_page))
        return report

    def _told(self, result):
        problem = getattr(result, "error_in_exec", None)
        snapshot = self._history.end()
        recorder = self._session.recorder
        recorder.mark(self._name, begins=False)
        self._session.cell_ended()
        recorder.wait_until_written()
        cells = self._session.cells
        with tempfile.TemporaryDirectory(prefix="faultline-") as folder:
            self._gather(folder, snapshot, problem)
            try:
                content = self._of_this_cell(_as_running(explain_path(folder, cells).content))
                if self._order.page:
                    self._write_page(folder)
            except ValueError:
                content = None
        if content is None:
            self._why_no_page = "There is no recording to show." if self._order.page else ""
            return self._without_recording(problem)
        content["input"]["path"] = self._name
        if not content["findings"] and (said := self._explained(problem)) is not None:
            return said
        rules = {finding["rule"] for finding in content["findings"]}
        sections = [self._what_was_not_seen()]
        if rules & SHOWS_HOLDERS or (problem is not None and kind_of(problem) == "memory"):
            sections.append(section_of(self._session.shell, cells))
        return Report(content, tuple(section for section in sections if section is not None))

    def _gather(self, folder, snapshot, problem):
        """The files of a run's folder."""
        if self._session.recorder.is_on:
            for pattern in ("process-*.faultline", "notes-*.txt"):
                for path in glob.glob(os.path.join(glob.escape(self._session.recorder.folder), pattern)):
                    shutil.copy(path, folder)
        process = Process(folder, self._began_ns)
        taken, reason = (self._history.at_failure, "oom") if self._history.at_failure else (snapshot, "exit")
        if taken is not None and any(taken.get("segments") or ()):
            self._sources["torch"] = process.save(
                f"torch-{process.pid}-{reason}.pickle",
                lambda file: pickle.dump(taken, file, protocol=4),
                may_be_large=True,
            )
        kind = kind_of(problem) if problem is not None else ""
        if kind:
            process.know(other_exceptions=[describe(problem, problem.__traceback__, "a notebook cell", kind)])
        jax = sys.modules.get("jax")
        if kind and (jax is not None or "tensorflow" in sys.modules):
            words = words_of(problem, problem.__traceback__).encode("utf-8", "replace")
            process.save(f"failure-{process.pid}.txt", lambda file: file.write(words))
        if kind == "memory" and jax is not None and getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None):
            try:
                profile = jax.profiler.device_memory_profile()
                self._sources["jax"] = process.save(
                    failure_profile_name(process.pid),
                    lambda file: file.write(profile),
                    may_be_large=True,
                )
            except Exception as trouble:
                self._history.notes.append(f"JAX gave no profile of its memory ({type(trouble).__name__}).")
        process.know(frameworks={n: str(m.__version__) for n in ("torch", "jax", "tensorflow") if (m := _module(n))})
        process.write()

    def _of_this_cell(self, content):
        """Findings that belong to cells before this one are not told again."""
        shown, kept = self._session.shown, []
        for finding in content["findings"]:
            key = (finding.get("fingerprint"), finding.get("count"))
            cells_in = [_cell(place) for place in (finding.get("location"), *finding.get("call_path", ()))]
            last = (finding.get("call_path") or [finding.get("location") or {}])[-1]
            of_another = (
                any(cells_in) and self._name not in cells_in and _cell(last) and last.get("function") == "<module>"
            )
            if key not in shown and not of_another:
                kept.append(finding)
            shown.add(key)
        self._left_out = len(content["findings"]) - len(kept)
        return {**content, "findings": kept}

    def _what_was_not_seen(self):
        sentences = list(self._history.notes)
        recorder = self._session.recorder
        if not recorder.is_on:
            told_by = [
                words
                for words, is_there in (
                    (
                        "PyTorch's own memory history during this cell, in which memory from before has no lines",
                        self._sources["torch"],
                    ),
                    ("JAX's own profile of its arrays", self._sources["jax"]),
                )
                if is_there
            ]
            sentences.append(
                f"Calls of the CUDA driver were not recorded: {recorder.why_not}. This report comes from {' and '.join(told_by) or 'the words of the error'}."
            )
        elif self._history.was_running and not self._history.by_user:
            sentences.append(
                "PyTorch's tensors have lines from this cell on; those of earlier cells are known as segments."
            )
        if self._left_out:
            sentences.append(f"What was found in earlier cells is not repeated ({self._left_out}).")
        return Section("Recorded in a running kernel", tuple(sentences)) if sentences else None

    def _explained(self, problem):
        """What the error's own words say; None: nothing of a GPU."""
        try:
            return explain_exception(problem, self._session.cells) if isinstance(problem, Exception) else None
        except ValueError:
            return None

    def _without_recording(self, problem):
        if (said := self._explained(problem)) is not None:
            return said
        recorder = self._session.recorder
        why = (
            why_nothing(sys.modules.get("torch"))
            if recorder.is_on
            else f"{recorder.why_not[:1].upper()}{recorder.why_not[1:]}."
        )
        return Report(
            {},
            (Section(f"Nothing was seen on a GPU in {self._name}", (*dict.fromkeys((*self._history.notes, why)),)),),
        )

    def _write_page(self, folder):
        status, _, told = call("view", folder, "-o", os.path.abspath(self._order.page), "--no-open")
        if status != 0:
            self._why_no_page = told.strip() or f"faultline view ended with status {status}."


def _module(name):
    module = sys.modules.get(name)
    return module if hasattr(module, "__version__") else None


def _cell(place) -> str:
    file = (place or {}).get("file") or ""
    return file if re.fullmatch(r"cell \[\d+\]", file) else ""


def _as_running(content):
    """The kernel goes on: that its end was not seen is no gap."""
    told = content.get("input", {})
    told["unseen"] = [one for one in told.get("unseen", ()) if "stops without an end" not in one]
    if not told["unseen"]:
        del told["unseen"]
    told.get("lost", {}).pop("trace_file.unfinished_writers", None)
    content["not_judged"] = [
        {**one, "why": "the kernel goes on; %%faultline watch shows what a cell leaves behind"}
        if "did not come to exit()" in one.get("why", "")
        else one
        for one in content.get("not_judged", ())
    ]
    return content
