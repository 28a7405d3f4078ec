"""Waits for the program to import PyTorch, and starts the dry run right then.

Nothing of PyTorch may be imported before the program does so itself, and most processes (a shell's helpers, data workers) never do.
"""

from __future__ import annotations

import gc
import json
import os
import sys

from .._import_watch import ImportWatch
from . import vary


def start(options: dict) -> None:
    from . import dry_run_session
    from .no_gpu import Unsupported

    try:
        dry_run_session.begin(options)
    except Exception as problem:  # whatever it is, it is ours and not the program's
        why = (
            str(problem) if isinstance(problem, (Unsupported, RuntimeError)) else f"{type(problem).__name__}: {problem}"
        )
        dry_run_session.leave_summary(options, {"unsupported": why})
        print(
            f"faultline: {'this PyTorch cannot be dry-run' if isinstance(problem, Unsupported) else 'the dry run could not start'}: {problem}",
            file=sys.stderr,
        )
        os._exit(2)


def _start_after_import(options: dict) -> None:
    """PyTorch's import makes hundreds of thousands of objects that stay: to look for garbage among them takes a tenth of its time."""
    before = gc.get_threshold()

    def after(_name, _torch):
        gc.set_threshold(*before)
        start(options)

    ImportWatch(("torch",), after, lambda _name: gc.set_threshold(200_000, *before[1:]))


def arm(plan_path: str) -> None:
    with open(plan_path, encoding="utf-8") as file:
        options = json.load(file)
    if "torch" in sys.modules:
        start(options)
    else:
        _start_after_import(options)
    if values := vary.wanted(options):
        vary.arm(values)
