"""What comes after the training loop: evaluation, saving. A program that has made enough steps in a loop over a DataLoader is not stopped there: the loop ends as if its data had,
and from then on every loop over a DataLoader gets two batches. So the phases behind the loop are seen, as far as that takes little time."""

from __future__ import annotations

import ast
import os
import time
import weakref

import torch
import torch.utils.data

from . import phases, vary

_BATCHES = 2
_SECONDS = 6


class _Loop:
    """A DataLoader's iterator, which may end early."""

    def __init__(self, loader, inner, beyond):
        self.of, self._inner, self._beyond, self.given = loader, inner, beyond, 0

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __next__(self):
        if self._beyond.on and (self.given >= _BATCHES or self._beyond.cut is not None and self._beyond.cut() is self):
            raise StopIteration
        batch = next(self._inner)
        self.given += 1
        self._beyond.last = weakref.ref(self)
        return batch


class BeyondLoops:
    def __init__(self, session):
        self._session = session
        self.on = False
        self.last = self.cut = None  # the loop that gave the last batch; the one that was ended
        self._steps = 0

    def install(self) -> None:
        if not self._session.options.get("go_on"):
            return
        loader, beyond = torch.utils.data.DataLoader, self
        original = loader.__iter__

        def faultline(this):
            return _Loop(this, original(this), beyond)

        loader.__iter__ = faultline

    def begin(self) -> bool:
        """Enough steps have been made. Is there a loop to end?"""
        steps = self._session.progress.steps
        if self.on:
            return steps < self._steps + self._session.options["steps"]
        if self.last is None or self.last() is None:
            return False
        self.on, self.cut, self._steps = True, self.last, steps
        mode = self._session.mode
        mode.deadline = min(mode.deadline or float("inf"), time.monotonic() + _SECONDS)
        return True

    def words(self) -> str:
        """How far it went, for a program that was not stopped otherwise."""
        return f"in its loop over a DataLoader after {self._steps} optimizer steps, and went on behind that loop with {_BATCHES} batches in each"


def not_reached(seen: list[str]) -> list[str]:
    """Phases that the program's own files have and that were not seen, with their lines. Whether the program would come to them is not known."""
    found: dict[str, str] = {}
    here = os.path.join(os.getcwd(), "")
    for file, tree in vary.program_trees():
        for node in ast.walk(tree):
            name = _phase_of(node)
            if name is not None and name not in seen:
                found.setdefault(name, f"{name} ({file.removeprefix(here)}:{node.lineno})")
    return list(found.values())


def _phase_of(node) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Name):
        return phases.SAVING if node.func.id == "save_file" else None
    if not isinstance(node.func, ast.Attribute):
        return None
    attribute, base = node.func.attr, node.func.value
    if attribute == "save" and isinstance(base, ast.Name) and base.id == "torch":
        return phases.SAVING
    if attribute in ("save_file", "save_pretrained"):
        return phases.SAVING
    if attribute == "generate":
        return phases.GENERATION
    return phases.EVALUATION if attribute == "eval" and not node.args and not node.keywords else None
