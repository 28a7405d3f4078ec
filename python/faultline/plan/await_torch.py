"""Waits for the program to import PyTorch, JAX or TensorFlow, and starts the dry run right then.

Nothing of them may be imported before the program does so itself, and most processes (a shell's helpers, data workers) never do.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import re
import sys

from .._import_watch import ImportWatch
from .._private import private
from .session import environment
from .source import changed_source

_OLDEST = (2, 1)

FRAMEWORKS = ("torch", "jax", "tensorflow")
begun: list = []  # sessions of frameworks with a pool of their own


def start(options: dict) -> None:
    from .session.session import refuse
    from .torch import dry_run_session

    try:
        _refuse_older()
        dry_run_session.begin(options)
    except Exception as problem:  # whatever it is, it is ours and not the program's
        refuse(options, _as_found(problem))


def _refuse_older() -> None:
    from .session.session import NotOfThisFramework

    version = str(getattr(sys.modules["torch"], "__version__", ""))
    numbers = [int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:2]]
    if numbers and tuple(numbers) < _OLDEST:
        raise NotOfThisFramework(f"PyTorch {version} is older than 2.1, the oldest that is planned")


def _as_found(problem: Exception) -> Exception:
    """An installation that is not whole has no module or attribute that every release has."""
    from .session.session import NotOfThisFramework

    if isinstance(problem, (ImportError, AttributeError)):
        torch = sys.modules.get("torch")
        version, place = getattr(torch, "__version__", "of no version"), getattr(torch, "__file__", None)
        return NotOfThisFramework(
            f"PyTorch {version} in {os.path.dirname(place) if place else 'a folder without __init__.py'} is not whole, or not as any release from 2.1 on is "
            f"({type(problem).__name__}: {problem}). Install it anew, or plan with another: the program's own Python decides which"
        )
    return problem


class _Import:
    """PyTorch's import, of which a file in the run's folder tells as long as it is not over: it may end the process."""

    def __init__(self, options: dict):
        self._options = options
        self._thresholds = gc.get_threshold()
        self._file = os.path.join(options["folder"], f"import-{os.getpid()}.json")

    def begins(self, _name) -> None:
        # It makes hundreds of thousands of objects that stay: to look for garbage among them takes a tenth of its time.
        gc.set_threshold(200_000, *self._thresholds[1:])
        self._tell(
            "PyTorch's import did not come to its end: the process ended in it, as with a library that is broken",
            is_under_way=True,
        )

    def failed(self, _name, problem) -> None:
        gc.set_threshold(*self._thresholds)
        if problem is None:
            return self._tell(f"PyTorch is not installed for {sys.executable}")
        if isinstance(problem, KeyboardInterrupt):
            return self._tell("PyTorch's import was interrupted (KeyboardInterrupt)", is_under_way=True)
        text = (str(problem).strip().splitlines() or [""])[0].strip()
        trace, place = problem.__traceback__, ""
        while trace is not None:
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
            trace = trace.tb_next
        self._tell(
            f"PyTorch could not be imported by {sys.executable}: {type(problem).__name__}: {text} ({place}). It is broken or half installed, or something of its name hides it; Faultline has no part in it: python -c 'import torch' should fail in the same way"
        )

    def is_over(self, _name, _torch) -> None:
        gc.set_threshold(*self._thresholds)
        try:
            os.unlink(self._file)
        except OSError:
            pass
        start(self._options)

    def _tell(self, why: str, is_under_way: bool = False) -> None:
        """is_under_way: whoever ended the process then knows why the import has no end."""
        try:
            with open(self._file, "w", encoding="utf-8", opener=private) as file:
                json.dump({"why": why, "is_under_way": is_under_way}, file)
        except OSError:
            pass


def _begin_beside(options: dict, begin) -> None:
    """A framework with a pool of its own: it waits until something is on the GPU."""
    from .session.session import refuse

    try:
        begun.append(begin(options))
    except Exception as problem:
        if "torch" in sys.modules:
            return  # a library looks for what there is: the program is PyTorch's
        refuse(options, problem)


def _before(options: dict, name: str) -> None:
    """JAX runs on the CPU; a child of the program still finds what was chosen for it."""
    if name == "jax":
        chosen = os.environ.setdefault("FAULTLINE_JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS", ""))
        options["jax_platforms"] = chosen
        os.environ["JAX_PLATFORMS"] = "cpu"


def _imported(options: dict, name: str) -> None:
    if name == "torch":
        start(options)
    else:  # the folder of its name
        _begin_beside(options, importlib.import_module(f".{name}", __package__).begin)


def watch(options: dict) -> None:
    """Begins with what is imported already, and waits for the rest."""
    for name in FRAMEWORKS:
        if name in sys.modules:
            _before(options, name)
            _imported(options, name)
        elif name == "torch":
            watched = _Import(options)
            ImportWatch((name,), watched.is_over, watched.begins, watched.failed)
        else:
            ImportWatch((name,), lambda name, _module: _imported(options, name), functools.partial(_before, options))


def arm(plan_path: str) -> None:
    with open(plan_path, encoding="utf-8") as file:
        options = json.load(file)
    environment.show_users()
    changed_source.arm(options)  # what it edits is no change any more that a session would make
    watch(options)
