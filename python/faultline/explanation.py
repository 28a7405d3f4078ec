"""faultline.explain(what): the verb `explain` for an exception, a file, a text, a snapshot or a profile of a running Python program."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import tempfile

from .notebook import loaded as notebook
from .notebook.cells import Cells, running_shell
from .report import Report, call


def explain(what=None, gpu: str | None = None) -> Report:
    """Explains an exception, a path, a text with an error in it, PyTorch's snapshot (a dict) or JAX's profile (bytes); without anything the last exception.

    Raises ValueError when there is nothing in it to explain.
    """
    loaded = notebook.extension
    cells = loaded.cells if loaded is not None else Cells(running_shell())
    if what is None:
        what = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
        if what is None:
            raise ValueError("there was no exception yet: give an exception, a path or a text")
    if isinstance(what, BaseException):
        known = loaded.report_of(what) if loaded is not None else None
        return known or explain_exception(what, cells, gpu)
    if isinstance(what, (str, os.PathLike)):
        path = os.fspath(what)
        if isinstance(what, os.PathLike) or os.path.exists(path):
            return explain_path(path, cells, gpu)
        if path and not any(mark in path for mark in " \n\t"):
            raise ValueError(f"{path}: there is no such file, and it is no text with an error in it")
        return _explain_bytes(cells.in_traceback(what).encode("utf-8", "replace"), "text.txt", cells, gpu)
    if isinstance(what, dict):
        return _explain_bytes(pickle.dumps(what, protocol=4), "snapshot.pickle", cells, gpu)
    if isinstance(what, (bytes, bytearray)):
        return _explain_bytes(bytes(what), "input", cells, gpu)
    raise ValueError(
        f"{type(what).__name__} is nothing to explain: give an exception, a path, a text, a snapshot (dict)"
    )


def explain_exception(problem: BaseException, cells: Cells, gpu: str | None = None) -> Report:
    from .notebook.kept_alive import section_of
    from .run.exceptions import kind_of
    from .run.process import words_of

    text = cells.in_traceback(words_of(problem, problem.__traceback__)) or f"{type(problem).__name__}: {problem}"
    report = _explain_bytes(text.encode("utf-8", "replace"), "text.txt", cells, gpu)
    shell = running_shell()
    kept = section_of(shell, cells) if shell is not None and kind_of(problem) == "memory" else None
    return Report(report.content, (*report.sections, *([kept] if kept else [])))


def explain_path(path: str, cells: Cells, gpu: str | None = None) -> Report:
    status, told, problem = call("explain", path, "--format", "json", *(["--gpu", gpu] if gpu else []))
    try:
        content = json.loads(told)
    except ValueError:
        said = problem.strip().replace("faultline: ", "", 1) or f"status {status}, and no report"
        raise ValueError(re.sub(r"(cell \[\d+\]):(\d+)", r"\1, line \2", said)) from None
    return Report(cells.in_report(content[0] if isinstance(content, list) else content))


def _explain_bytes(content: bytes, name: str, cells: Cells, gpu: str | None) -> Report:
    with tempfile.TemporaryDirectory(prefix="faultline-") as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        try:
            report = explain_path(path, cells, gpu)
        except ValueError as problem:
            raise ValueError(str(problem).replace(f"{path}: ", "")) from None
    report.content.get("input", {})["path"] = ""
    return report
