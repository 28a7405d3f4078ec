"""The dry run of a program that takes GPU memory from a pool of its framework's own: JAX, TensorFlow. What both have in common: the device, the way the program ends, what is told of it.

The pool is opened with the first thing that is on the GPU, so that a program that only imports the framework beside PyTorch is PyTorch's.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time

from ..._file_owner import is_library, is_own
from ...common.stacks import Stacks, user_line
from ..remedies.table import numbers_of
from ..source import names
from ..source.changed_source import is_trial
from ..source.edits import numbers_in_source
from ..source.reader import note_main
from . import ending
from .device import HEAP_DRIVER, NoTrace, OutOfMemory, PoolDevice
from .estimates import Estimated, may_be_taken
from .gpu import Gpu
from .session import NotOfThisFramework, Session, current, make_current, refuse
from .unplannable import Unplannable


class PoolSession(Session):
    packages: tuple = ()  # whose files are the framework's own

    def __init__(self, options: dict):
        super().__init__(options)
        gpus = [Gpu.of(entry) for entry in options.get("gpus") or [options["gpu"]]]
        self.gpu, self.gpu_count = gpus[0], len(gpus)
        self.device: PoolDevice | None = None
        self.not_counted = 0.0  # seconds that the dry run itself took: compilers
        self.operations = self.steps = 0  # steps: rounds that are over because another begins
        self._begins_round = False
        self.allocations_at_failure = -1
        self.asked_free_line = None
        self._refusals_left = 0
        self._inside: dict[str, bool] = {}  # by file: is it the framework's own?

    # --- for a framework to say

    def settings(self) -> str:
        raise NotImplementedError

    def context_bytes(self) -> int:
        return self.gpu.context_bytes

    # --- the device

    def open(self) -> None:
        """With the first array. From here on the program is one of this framework."""
        if self.device is not None:
            return
        other = current()
        if other is not None and other is not self:
            if other.device is not None and other.device.stats().allocations:
                Unplannable(
                    f"the program uses {self.title} on the GPU beside {other.title}, and only one of them can be planned"
                )
            other.step_aside()
        if self.gpu_count > 1:
            Unplannable(f"a {self.title} program is planned on one GPU, and {self.gpu_count} are named")
        make_current(self)
        self.device = self._opened(self.trace)
        self.stacks = Stacks(self.device)
        self.started = time.monotonic()
        if self.options.get("overcommit"):
            self._grow_after(self.options.get("refused") or 0)
        note_main()

    def _opened(self, trace: str) -> PoolDevice:
        def made(settings: str) -> PoolDevice:
            return PoolDevice(self.options["library"], trace, self.gpu, self.context_bytes(), self.framework, settings)

        try:
            return made(self.settings())
        except NoTrace as problem:
            refuse(self.options, problem)
        except RuntimeError as problem:
            Unplannable(f"a setting of {self.title}'s pool could not be followed: {problem}")
            return made("")

    def refuse(self, why: str) -> None:
        """There is nothing on the GPU to plan: the process ends here."""
        refuse(self.options, NotOfThisFramework(why))

    def _grow_after(self, refusals: int) -> None:
        self._refusals_left = refusals
        if refusals == 0:
            self.device.set_overcommit(True)

    def here(self) -> int:
        """The stack, without the framework's own frames below the line that called it."""
        self.open()
        frame = inner = sys._getframe(1)
        while frame is not None and (self._is_inside(frame.f_code.co_filename) or is_own(frame.f_code.co_filename)):
            frame = frame.f_back
        return self.stacks.here(frame or inner)

    def _is_inside(self, file: str) -> bool:
        known = self._inside.get(file)
        if known is None:
            known = is_library(file) and any(f"{os.sep}{name}{os.sep}" in file for name in self.packages)
            self._inside[file] = known
        return known

    def take(self, size_bytes: int, stack: int, tensor: int = 0) -> int:
        """The allocation; raises OutOfMemory. The size may be an Estimated, whose ends the plan then counts with, too."""
        may_be = may_be_taken(size_bytes)
        if (size_bytes == 0 and not may_be) or self.closed or os.getpid() != self.owner:
            return 0
        self.open()
        if may_be:
            self.device.estimate(size_bytes, 0, stack=stack)
            return 0
        try:
            allocation = self.device.alloc(size_bytes, stack=stack, tensor=tensor)[0]
            if isinstance(size_bytes, Estimated):
                self.device.estimate(size_bytes, allocation, stack=stack)
            return allocation
        except OutOfMemory:
            self._note_refusal()
            raise

    def _note_refusal(self) -> None:
        self.allocations_at_failure = self.device.stats().allocations
        if self._refusals_left > 0:
            self._grow_after(self._refusals_left - 1)

    def take_outside(self, size_bytes: int, stack: int, tensor: int = 0) -> int:
        """Beside the pool, from the driver; raises OutOfMemory."""
        if size_bytes == 0 or self.closed or os.getpid() != self.owner:
            return 0
        self.open()
        try:
            return self.device.alloc(size_bytes, heap=HEAP_DRIVER, stack=stack, tensor=tensor)[0]
        except OutOfMemory:
            self._note_refusal()
            raise

    def give_back(self, allocation: int) -> None:
        if allocation and not self.closed and os.getpid() == self.owner:
            self.device.free(allocation)

    def trouble(self, problem: BaseException, what: str) -> None:
        """Something of ours went wrong while the program asked for `what`: it runs on, and is not planned. An out-of-memory is none."""
        if self.is_out_of_memory(problem):
            raise problem
        Unplannable(f"what {what} takes could not be counted ({type(problem).__name__}: {str(problem)[:200]})")

    def line_name(self) -> str:
        """The program's line as the account names it: train.py:12."""
        return os.path.basename(user_line())

    # --- how the program ends

    def install(self) -> None:
        atexit.register(self.finish)
        sys.excepthook = ending.around_excepthook(sys.excepthook, self.note_death)

    def step(self, name: str) -> None:
        """The program begins its second round, or a later one: the mark ends the one before."""
        self.mark_round(name)
        now = time.monotonic() - self.not_counted, time.process_time() - self.not_counted
        self.first_step = self.first_step or now
        self._begins_round = True
        took = min(now[0] - self.first_step[0], now[1] - self.first_step[1])
        wanted = self.options.get("steps")
        if wanted and self.steps >= wanted and took >= (self.options.get("at_least_seconds") or 0):
            self._begins_round = False
            self._stop("steps", f"after {self.steps} calls of {name}")

    def mark_round(self, name: str) -> None:
        self.device.step_mark(self.steps, name)
        self.steps += 1

    def tick(self) -> None:
        """At everything that the program does on the GPU."""
        self.operations += 1
        seconds = self.options.get("seconds")
        late = time.monotonic() - self.started - self.not_counted - seconds if seconds else 0
        if late > 0 and self.may_be_stopped(late):
            self._stop("seconds", f"after {seconds} seconds")

    def may_be_stopped(self, late_seconds: float) -> bool:
        """Its time is over: is this a moment to end it?"""
        return True

    def _stop(self, by: str, why: str) -> None:
        if threading.current_thread() is not threading.main_thread() and not self.stopped:
            return  # its exception would end the thread alone
        if not self.stopped:
            super()._stop(by, why)
        if time.monotonic() > self._end_by:
            self._end_now()

    def looks(self) -> int:
        return self.operations

    def settle(self, settle: bool) -> dict | None:
        if self.device is None:
            if current() is not None:
                return None
            self.open()  # nothing was on the GPU, which the plan says
        self.tell_at_end()
        stats = self.device.stats()
        return {
            "peak_allocated": stats.peak_allocated_bytes,
            "peak_reserved": stats.peak_reserved_bytes,
            "allocations": stats.allocations,
            "ooms": stats.out_of_memories,
            "last_was_out_of_memory": self.allocations_at_failure == stats.allocations,
        }

    def told(self) -> dict:
        return {
            "operations": self.operations,
            "steps": self.steps + (self._begins_round and self.problem is None),  # the last one, too
            "changes": self.applied(),
            "offers": [] if is_trial(self.options) else self.offers(),
            "number_offers": numbers_of(self.framework),
            "numbers": numbers_in_source(names.BATCH),
            "asked_free": self.asked_free_line,
        }

    def applied(self) -> dict[str, str]:
        """What this run was asked to do otherwise, and did."""
        return {}

    def offers(self) -> list[dict]:
        """Changes that a run may try."""
        return []

    def tell_at_end(self) -> None:
        """Notes about the whole run."""


def uncounted(session: PoolSession):
    """Time that passes inside is the dry run's own, not the program's."""

    def around(function):
        @functools.wraps(function)
        def faultline(*arguments, **named):
            begin = time.monotonic()
            try:
                return function(*arguments, **named)
            finally:
                session.not_counted += time.monotonic() - begin

        return faultline

    return around
