"""What comes after the training loop: evaluation, saving. A program that has made enough steps in a loop over a DataLoader is not stopped there: the loop ends as if its data had,
and from then on every loop over a DataLoader gets two batches. So the phases behind the loop are seen, as far as that takes little time. A loop in which memory rises with
every round gets a few more, and is told with how far it went: what it keeps of all its rounds is for the allocator's model to say (src/plan/rounds.h)."""

from __future__ import annotations

import ast
import os
import time
import weakref

import torch
import torch.utils.data

from ....common.stacks import user_line
from ...session import marks
from ...source.reader import program_sources
from . import phases

_BATCHES = 2
_RISING = 12  # so many batches where memory rises
_LEAST_ROUNDS = 4  # so many tell growth from what is made once
_SECONDS = 6  # of computing
_MOST_SECONDS = 4 * _SECONDS  # for a loop of which it is not known yet whether memory rises in it
_WAITING = 5  # times as long on the clock, where other programs have the processor or the program waits
_MOST_MARKS = 20_000


class _Loop:
    """A DataLoader's iterator, which may end early."""

    def __init__(self, loader, inner, beyond):
        self.of, self._inner, self._beyond, self.given = loader, inner, beyond, 0
        self.where, self.number, self.steps = "", 0, 0
        self.live: list[int] = []  # what is allocated as each round begins

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def __next__(self):
        beyond = self._beyond
        beyond.round_begins(self)
        if beyond.on and (beyond.is_seen_enough(self) or beyond.cut is not None and beyond.cut() is self):
            beyond.ended_early(self)
            raise StopIteration
        batch = next(self._inner)
        self.given += 1
        beyond.last = weakref.ref(self)
        beyond.latest[id(self.of)] = beyond.last
        return batch

    def grows(self) -> bool:
        """Nearly every round since the first left more than the one before."""
        rounds = self.live[1:]
        rises = sum(later > earlier for earlier, later in zip(rounds, rounds[1:]))
        return len(rounds) >= _LEAST_ROUNDS and rounds[-1] > rounds[0] and rises * 4 >= (len(rounds) - 1) * 3

    def is_undecided(self) -> bool:
        """It has more left with every round, or may have: too few have been."""
        rounds = self.live[1:]
        return len(rounds) <= _LEAST_ROUNDS and (len(rounds) < 2 or rounds[-1] > rounds[0])


class BeyondLoops:
    def __init__(self, session):
        self._session = session
        self.on = False
        self.last = self.cut = None  # the loop that gave the last batch; the one that was ended
        self.latest: dict[int, weakref.ref] = {}  # by loader: the loop that gave its last batch
        self._steps = 0
        self._began = self._computed = 0.0  # when the training loop was ended: on the clock, and of computing
        self._asked_until = float("inf")  # --seconds
        self._loops = self._marks = 0
        self._rising: list[dict] = []
        self.training_batch = 0  # of the loader whose loop makes steps; 0: not known

    def install(self) -> None:
        if not self._session.options.get("go_on"):
            return
        loader, beyond = torch.utils.data.DataLoader, self
        original = loader.__iter__

        def faultline(this):
            return _Loop(this, original(this), beyond)

        loader.__iter__ = faultline

    def giving(self, loader) -> _Loop | None:
        """The loop over it that gave its last batch."""
        latest = self.latest.get(id(loader))
        loop = latest() if latest is not None else None
        return loop if loop is not None and loop.of is loader else None

    # --- rounds

    def round_begins(self, loop: _Loop) -> None:
        """Where memory has risen the trace gets a mark: an operation "round of loop N" (src/plan/rounds.cpp). Rounds that make steps need none: their growth is told from the steps."""
        session = self._session
        if session.memory.closed:
            return
        if len(loop.live) == 1 and session.progress.steps > loop.steps:
            self.training_batch = getattr(loop.of, "batch_size", None) or 0
        loop.live.append(sum(session.device.stats(place).allocated_bytes for place in range(len(session.gpus))))
        if len(loop.live) == 1:
            loop.where = (user_line() or "").removeprefix(os.path.join(os.getcwd(), ""))
            loop.steps = session.progress.steps
        elif (
            session.progress.steps == loop.steps
            and len(loop.live) > 2
            and loop.live[-1] > loop.live[-2]
            and self._marks < _MOST_MARKS
        ):
            if not loop.number:
                self._loops += 1
                loop.number = self._loops
            self._marks += 1
            session.device.mark(f"{marks.ROUND}{loop.number}", session.memory.stacks.here())

    def is_seen_enough(self, loop: _Loop) -> bool:
        rises = len(loop.live) > 2 and loop.live[-1] > loop.live[1]
        return loop.given >= (_RISING if rises else _BATCHES)

    def ended_early(self, loop: _Loop) -> None:
        """Growth over steps is told from the steps."""
        if loop.steps != self._session.progress.steps or not loop.grows():
            return
        try:
            rounds = len(loop)
        except (TypeError, NotImplementedError):
            rounds = 0  # it has no length
        begun = len(loop.live) - 1
        if not rounds or rounds > begun:
            self._rising.append({"where": loop.where, "number": loop.number, "rounds": rounds, "begun": begun})

    def stopped(self) -> None:
        """The program is stopped: the loop that gave the last batch may have more."""
        loop = self.last() if self.last is not None else None
        if loop is not None and loop.number not in [one["number"] for one in self._rising]:
            self.ended_early(loop)

    def rising(self) -> list[dict]:
        """Loops that were ended early while memory rose."""
        return self._rising

    # --- the end of a loop over data that has been seen enough of

    def begin(self) -> bool:
        """Enough steps have been made. Is there a loop to end?"""
        steps = self._session.progress.steps
        if self.on:
            return steps < self._steps + self._session.options["steps"]
        if self.last is None or self.last() is None:
            return False
        self.on, self.cut, self._steps = True, self.last, steps
        self._began, self._computed = time.monotonic(), time.process_time()
        mode = self._session.mode
        self._asked_until = mode.deadline or float("inf")
        mode.deadline = min(self._asked_until, self._began + _SECONDS)
        return True

    def more_time(self) -> float | None:
        """Until when it goes on, whose time on the clock is over: what it finds is not a matter of how busy the machine is. None: it has had enough."""
        now, computed = time.monotonic(), time.process_time() - self._computed
        loop = self.last()
        undecided = loop is not None and loop is not self.cut() and loop.is_undecided()
        seconds = _MOST_SECONDS if undecided else _SECONDS
        until = min(self._asked_until, self._began + _WAITING * seconds, now + seconds - computed)
        return until if until > now else None

    def words(self) -> str:
        """How far it went, for a program that was not stopped otherwise."""
        return f"in its loop over a DataLoader after {self._steps} optimizer steps, and went on behind that loop with {_BATCHES} batches in each"


def not_reached(seen: list[str]) -> list[str]:
    """Phases that the program's own files have and that were not seen, with their lines. Whether the program would come to them is not known."""
    found: dict[str, str] = {}
    here = os.path.join(os.getcwd(), "")
    for source in program_sources():
        for node in ast.walk(source.tree):
            name = _phase_of(node)
            if name is not None and name not in seen:
                found.setdefault(name, f"{name} ({source.file.removeprefix(here)}:{node.lineno})")
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
