"""Waits for the program to import PyTorch, and starts the dry run right then.

Nothing of PyTorch may be imported before the program does so itself, and most processes (a shell's helpers, data workers) never do.
"""

from __future__ import annotations

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


def arm(plan_path: str) -> None:
    with open(plan_path, encoding="utf-8") as file:
        options = json.load(file)
    if "torch" in sys.modules:
        start(options)
    else:
        ImportWatch(("torch",), lambda _name, _torch: start(options))
    if values := vary.wanted(options):
        vary.arm(values)
