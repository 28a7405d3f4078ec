"""The dry run of one process: what each has, whatever the framework. torch/dry_run_session.py, jax/jax_session.py and tensorflow/tensorflow_session.py say the rest.

it begins   make_current()   one framework's session is the process's own
it stops    _stop()          after enough steps, or when its time is over: a mark in the trace, then the program ends as by sys.exit()
it dies     note_death()     of an exception: its line, and whether it is the program's affair
it ends     finish()         notes and properties go into the trace, the summary (summary.py) beside it
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from ...common.stacks import Stacks
from ..source import changed_source, vary
from . import ending, marks, summary
from .device import NoTrace
from .notes import Notes
from .unplannable import Unplannable, first_sentence, of_own_code

_current = None


def current() -> Session | None:
    return _current


def make_current(session: Session) -> None:
    """Its framework turned out to be the one that uses the GPU."""
    global _current
    _current = session


class NotOfThisFramework(RuntimeError):
    """The framework as it is here cannot be dry-run, whatever the program does with it: real numbers would not help."""


def refuse(options: dict, problem: Exception) -> None:
    """The dry run cannot begin: the process ends here."""
    told = str(problem) if isinstance(problem, RuntimeError) else f"{type(problem).__name__}: {problem}"
    why, of = told, ""
    if isinstance(problem, NoTrace):
        why, of = problem.why, "folder"
    elif isinstance(problem, NotOfThisFramework):
        of = "framework"
    summary.leave(options, {"unsupported": {"text": why, "of": of}})
    print(f"faultline: the dry run could not start: {told}", file=sys.stderr, flush=True)
    os._exit(2)


class Session:
    framework = ""  # its package
    title = ""  # as people call it
    closed = False  # nothing is counted any more

    def __init__(self, options: dict):
        self.options, self.owner = options, os.getpid()
        self.trace = os.path.join(options["folder"], f"process-{os.getpid()}.faultline")
        self.notes = Notes()
        self.device = None
        self.stacks: Stacks | None = None
        self.started = time.monotonic()
        self.first_step = None  # when it was over: the wall's clock, the process's
        self.stopped = self.stopped_by = None
        self.problem = None
        self.died_of_memory = False
        self.decided_by_stand_in = True  # if it ends by a status of its own
        self._end_by = 0.0  # after a stop
        self._lock = threading.RLock()

    # --- for a framework to say

    def is_out_of_memory(self, problem: BaseException) -> bool:
        raise NotImplementedError

    def may_come_of_values(self, problem: BaseException) -> bool:
        """May values that were not computed have led to it?"""
        return not self.died_of_memory

    def blame(self, problem: BaseException, trace, place) -> None:
        """Tells what is not the program's affair."""
        if limit := of_own_code(problem, trace):
            Unplannable(limit)

    def looks(self) -> int:
        """How many kinds of results have been seen."""
        raise NotImplementedError

    def before_stop(self) -> None:
        """What is to be seen before the program lets go of things."""

    def settle(self, settle: bool) -> dict | None:
        """The program is over: what is known of it before anything else is asked, by the summary's keys; None: there was nothing to plan."""
        raise NotImplementedError

    def write(self) -> None:
        """What is the framework's own in the trace's end."""

    def told(self) -> dict:
        """The rest of the summary."""
        raise NotImplementedError

    # --- how it ends

    def _stop(self, by: str, why: str) -> None:
        """Ends the program as sys.exit() would: its own clean-up still runs. `by` is a word of StoppedBy (src/plan/plan.h), `why` is for people."""
        self.stopped_by, self.stopped = by, why
        self.before_stop()
        if self.device is not None:
            self.device.mark(marks.STOP, self.stacks.here())
        self._end_by = time.monotonic() + ending.GRACE_SECONDS
        ending.complete(self._end_now)

    def _end_now(self) -> None:
        ending.end_caught(self.notes, lambda: self.finish(settle=False))

    def note_death(self, problem: BaseException, trace) -> None:
        """The exception that ended the program, with its line."""
        if os.getpid() != self.owner or isinstance(problem, (KeyboardInterrupt, SystemExit)):
            return
        place = ending.place_of_death(trace)
        self.died_of_memory = any(map(self.is_out_of_memory, ending.causes_of(problem)))
        self.decided_by_stand_in = bool(self.notes.stand_in_read) and self.may_come_of_values(problem)
        self.blame(problem, trace, place)
        self.problem = {
            "type": type(problem).__name__,
            "message": first_sentence(str(problem)),
            "file": place.filename if place else "",
            "line": (place.lineno or 0) if place else 0,
            "function": place.name if place else "",
        }

    def step_aside(self) -> None:
        """Another framework is the one that uses the GPU."""
        self.closed = True
        if self.device is not None:
            self.device.close()
            os.unlink(self.trace)

    def finish(self, settle: bool = True) -> None:
        if self.closed or os.getpid() != self.owner:
            return
        with self._lock:
            if self.closed or (first := self.settle(settle)) is None:
                return
            self.notes.tell_decided(self.looks())
            self.notes.write(self.device)
            self.write()
            if self.stopped:
                self.device.property("dry-run.stopped", self.stopped)
            if self.problem:
                self.device.property("dry-run.exception", json.dumps(self.problem))
            if trouble := self.device.problem():
                Unplannable(f"what the program does was not recorded to its end: {trouble}")
            told = {**first, **self.told()}
            self.closed = True
            self.device.close()
        version = getattr(sys.modules.get(self.framework), "__version__", "")
        summary.leave(
            self.options,
            {
                "framework": f"{self.title} {version}".rstrip(),
                "exception": self.problem,
                "died_of_memory": self.died_of_memory,
                "stopped": self.stopped,
                "stopped_by": self.stopped_by,
                "stand_in": self.notes.stand_in_read if self.decided_by_stand_in else "",
                "unplanned": Unplannable.first,
                "edited": changed_source.told(),
                "vary": vary.told(),
                "began": ending.process_began(),
                "ended": ending.now_on_the_machine(),
                **told,
            },
        )
