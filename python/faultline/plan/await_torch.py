"""Waits for the program to import PyTorch, JAX or TensorFlow, and starts the dry run right then.

Nothing of them may be imported before the program does so itself, and most processes (a shell's helpers, data workers) never do.
"""

from __future__ import annotations

import functools
import json
import os
import sys

from .._import_watch import ImportWatch
from . import vary

FRAMEWORKS = ("torch", "jax", "tensorflow")
begun: list = []  # sessions of frameworks with a pool of their own


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


def _begin_beside(options: dict, begin) -> None:
    """A framework with a pool of its own: it waits until something is on the GPU."""
    from . import dry_run_session

    try:
        begun.append(begin(options))
    except Exception as problem:
        if "torch" in sys.modules:
            return  # a library looks for what there is: the program is PyTorch's
        why = str(problem) if isinstance(problem, RuntimeError) else f"{type(problem).__name__}: {problem}"
        dry_run_session.leave_summary(options, {"unsupported": why})
        print(f"faultline: the dry run could not start: {why}", file=sys.stderr)
        os._exit(2)


def _before(options: dict, name: str) -> None:
    """JAX runs on the CPU; a child of the program still finds what was chosen for it."""
    if name == "jax":
        chosen = os.environ.setdefault("FAULTLINE_JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS", ""))
        options["jax_platforms"] = chosen
        os.environ["JAX_PLATFORMS"] = "cpu"


def _imported(options: dict, name: str) -> None:
    if name == "torch":
        start(options)
    elif name == "jax":
        from . import for_jax

        _begin_beside(options, for_jax.begin)
    else:
        from . import for_tensorflow

        _begin_beside(options, for_tensorflow.begin)


def watch(options: dict) -> None:
    """Begins with what is imported already, and waits for the rest."""
    for name in FRAMEWORKS:
        if name in sys.modules:
            _before(options, name)
            _imported(options, name)
        else:
            ImportWatch((name,), lambda name, _module: _imported(options, name), functools.partial(_before, options))


def arm(plan_path: str) -> None:
    with open(plan_path, encoding="utf-8") as file:
        options = json.load(file)
    watch(options)
    if values := vary.wanted(options):
        vary.arm(values)
