"""Waits for the program to import PyTorch, and starts the dry run right then; so for other modules that the dry run must know.

Nothing of PyTorch may be imported before the program does so itself, and most processes (a shell's helpers, data workers) never do.
"""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import json
import os
import sys

from . import vary
from .._private import private


class _After(importlib.abc.MetaPathFinder):
    """Does something right after a module was imported."""

    def __init__(self, name: str, then):
        self._name, self._then = name, then
        self._busy = False

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self._busy:
            return None
        self._busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._busy = False
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            self._then(module)
        spec.loader.exec_module = exec_module
        return spec


def after_import(name: str, then) -> None:
    import importlib.util  # noqa: F401  (find_spec above needs it)
    sys.meta_path.insert(0, _After(name, then))


def start(options: dict) -> None:
    from . import install
    from .no_gpu import Unsupported
    try:
        install.begin(options)
    except Unsupported as problem:
        leave_summary(options, {"unsupported": str(problem)})
        print(f"faultline: this PyTorch cannot be dry-run: {problem}", file=sys.stderr)
        os._exit(2)
    except RuntimeError as problem:
        leave_summary(options, {"unsupported": str(problem)})
        print(f"faultline: the dry run could not start: {problem}", file=sys.stderr)
        os._exit(2)


def leave_summary(options: dict, summary: dict) -> None:
    try:
        with open(os.path.join(options["folder"], f"summary-{os.getpid()}.json"), "w", encoding="utf-8", opener=private) as file:
            json.dump(summary, file)
    except OSError as problem:
        print(f"faultline: {problem}", file=sys.stderr)


def arm(plan_path: str) -> None:
    with open(plan_path, encoding="utf-8") as file:
        options = json.load(file)
    if "torch" in sys.modules:
        start(options)
    else:
        after_import("torch", lambda _torch: start(options))
    if options.get("vary"):
        vary.arm(options["vary"], options)
