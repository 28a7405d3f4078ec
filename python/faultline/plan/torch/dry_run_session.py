"""Starts the dry run in this process, once PyTorch is imported, and ends it when the program does."""

from __future__ import annotations

import atexit
import functools
import os
import re
import sys
import threading
import time

from ...common.stacks import Stacks, user_line
from ..session import ending, summary
from ..session.gpu import Gpu, VisibleGpus
from ..session.session import Session, current, make_current
from ..session.unplannable import Unplannable
from ..source.changed_source import is_trial
from ..source.reader import note_main


class DryRunSession(Session):
    """Everything that one process's dry run holds."""

    framework, title = "torch", "PyTorch"

    def __init__(self, options: dict):
        from ..session.device import Device
        from .cuda import no_gpu
        from .cuda.cuda_api import Api
        from .dispatch import custom_operations
        from .dispatch.dispatch_mode import DryRunMode
        from .program.alike import StepsSeen
        from .program.beyond_loops import BeyondLoops
        from .program.holders import Holders
        from .program.loop_rounds import LoopRounds
        from .program.progress import Progress
        from .ranks.ranks import Rank
        from .release import releases
        from .remedies import Remedies
        from .tensors import places
        from .tensors.memory import Memory
        from .values.values import Values

        super().__init__(options)
        self.release = releases.now()
        self.gpus = [Gpu.of(entry) for entry in options.get("gpus") or [options["gpu"]]]
        on_machine = ranks_on_machine()
        self.for_ranks = len(self.gpus) == 1 < on_machine
        if self.for_ranks:  # each rank has one
            self.gpus *= on_machine
        no_gpu.prepare(options["library"])
        places.install(options["library"], len(self.gpus))
        first = self.gpus[0]
        self.device = Device(
            options["library"],
            self.trace,
            first.name,
            first.capacity_bytes,
            first.context_bytes,
            next((os.environ[name] for name in self.release.settings_variables if os.environ.get(name)), ""),
            self.release.name,
        )
        for gpu in self.gpus[1:]:
            self.device.add(gpu.name, gpu.capacity_bytes, gpu.context_bytes)
        if unknown := releases.unknown():
            self.notes.add("mode", unknown, "")
        if self.for_ranks:
            self.notes.add(
                "mode",
                f"one GPU is named and {on_machine} ranks run on a machine: so many of that kind were planned, one for each, as --gpu {on_machine}xNAME does",
                "",
            )
        self.stacks = Stacks(self.device)
        self.memory = Memory(self.device, self.stacks)
        if options.get("overcommit"):
            self.memory.grow_after(options.get("refused") or 0)
        self.values = Values(self.memory, everything=bool(options.get("real")))
        self.progress = Progress(self.memory)
        told = custom_operations.told_operations(options)
        self.mode = DryRunMode(self.memory, self.values, self.notes, self.gpus, self.progress, told)
        self.progress.host = self.mode.host
        self.api = Api(self.memory, self.gpus, self.notes, self.progress)
        self.api.visible = VisibleGpus(self.mode)
        self.api.less_free_bytes = int((options.get("changes") or {}).get("less_free") or 0)
        self.strided_attention = None  # told of attention that strides alone keep from a fused kernel
        self.remedies = Remedies(self)
        self.beyond = BeyondLoops(self)
        self.each_step = StepsSeen(self)
        self.loop_rounds = LoopRounds(self)
        self.holders = Holders(self)
        self.rank = Rank(self)
        self.watch = None  # of its process groups
        note_main()
        self.started = time.monotonic()

    def start(self) -> None:
        from . import torch_hooks
        from .dispatch.accumulation import accumulation
        from .hooks import awaited_modules

        awaited_modules.install()
        self.api.install()
        torch_hooks.install(self)
        self.beyond.install()
        self.progress.on_model = self.remedies.model_found
        self.progress.on_call = self.remedies.seen.model_called
        self.progress.on_step = self._after_step
        if not is_trial(self.options):
            self.progress.on_round = self.holders.came_round
        self.progress.before_first_backward = functools.partial(accumulation.learn, self.memory)
        self.mode.deadline = self.started + self.options["seconds"] if self.options.get("seconds") else None
        self.mode.on_deadline = self._out_of_time
        self.mode.__enter__()
        self._other_threads()
        sys.excepthook = ending.around_excepthook(sys.excepthook, self.note_death)
        os.register_at_fork(after_in_child=self._forked)
        os._exit = self._around_exit(os._exit)

    def _after_step(self) -> None:
        """After enough steps, and not while the program is so quick that it may as well run on."""
        if self.stopped:
            self._end_now()
        steps, gone = self.progress.steps, self._step_seconds()
        self.each_step.ended(steps)
        self.loop_rounds.ended(steps)
        if not self.options.get("steps"):
            return
        worth = self.options.get("at_least_seconds") or 0
        if steps >= self.options["steps"] and gone >= worth:
            if not self.beyond.begin():
                self._stop("steps", f"after {steps} optimizer steps")
        elif worth and gone < worth and not self.beyond.on:
            if why := self.each_step.are_enough(gone / max(1, steps - 1), worth):
                self._stop("alike", f"after {steps} optimizer steps: {why}")

    def _step_seconds(self) -> float:
        """Since the first step, as long as this process itself computed: imports and a busy machine do not count."""
        now = time.monotonic(), time.process_time()
        self.first_step = self.first_step or now
        return min(now[0] - self.first_step[0], now[1] - self.first_step[1])

    def _out_of_time(self) -> None:
        self.notes.waiting()
        if self.beyond.on and (until := self.beyond.more_time()):
            self.mode.deadline = until
        elif self.beyond.on:
            self._stop("loop", self.beyond.words())
        else:
            self._stop("seconds", f"after {self.options['seconds']} seconds")

    def before_stop(self) -> None:
        if self.progress.on_round is not None:
            self.holders.look(last=True)
        if self.progress.steps == 0:
            self.loop_rounds.stopped()
        self.beyond.stopped()
        self.mode.deadline, self.mode.on_deadline = time.monotonic() + ending.GRACE_SECONDS, self._end_now

    def _forked(self) -> None:
        self.device.leave_to_parent()
        self.mode.on_gpu_after_fork = self._gpu_after_fork

    def _gpu_after_fork(self) -> None:
        """What a forked process does on the GPU is not followed: said once, in the place of its summary."""
        self.mode.on_gpu_after_fork = None
        summary.leave(
            self.options,
            {
                "unplanned": {
                    "text": "a process made by fork uses the GPU, which a dry run does not follow: start it with the spawn method, or plan what it does by itself",
                    "line": user_line(),
                },
            },
        )

    def _around_exit(self, before):
        """os._exit() is the program's own end, and nothing is run after it."""

        def _exit(status):
            try:
                self.finish(settle=False)
            finally:
                before(status)

        return _exit

    @property
    def closed(self) -> bool:
        return self.memory.closed

    @closed.setter
    def closed(self, closed: bool) -> None:
        self.memory.closed = closed

    def is_out_of_memory(self, problem: BaseException) -> bool:
        from .release.older_torch import OutOfMemoryError

        return isinstance(problem, OutOfMemoryError)

    def may_come_of_values(self, problem: BaseException) -> bool:
        """Operations that refuse their operands are the program's affair; what it decides by values that were not computed is not."""
        return isinstance(
            problem, (ValueError, ArithmeticError, AssertionError, LookupError, RuntimeError)
        ) and not self.progress.has_failed(problem)

    def blame(self, problem: BaseException, trace, place) -> None:
        from .operations.failures import of_lost_threads, of_missing_cuda, of_own_mistake
        from .tensors import places

        if places.ASKED_FOR in str(problem):
            index, started = _asked_for(problem), _spawned(problem)
            Unplannable(
                _more_gpus(index, started),
                f"{place.filename}:{place.lineno}" if place else None,
                max(index + 1, started, ranks_on_machine()),
            )
        if limit := of_missing_cuda(problem) or of_lost_threads(problem) or of_own_mistake(problem, trace):
            Unplannable(limit)

    def _other_threads(self) -> None:
        """Threads of the program see the same GPU: the dispatch mode belongs to a thread."""
        from .hooks.legacy_tensor_types import moves_what_it_makes

        start, mode = threading.Thread._bootstrap_inner, self.mode

        def faultline(thread):
            moves_what_it_makes()
            with mode:
                start(thread)

        threading.Thread._bootstrap_inner = faultline

    def _peaks(self) -> dict:
        """Of the GPU that took most, and what happened on all."""
        each = [self.device.stats(place) for place in range(len(self.gpus))]
        most = max(each, key=lambda stats: stats.peak_reserved_bytes)
        return {
            "peak_allocated": most.peak_allocated_bytes,
            "peak_reserved": most.peak_reserved_bytes,
            "allocations": sum(s.allocations for s in each),
            "ooms": sum(s.out_of_memories for s in each),
        }

    def looks(self) -> int:
        return self.mode.looks()

    def settle(self, settle: bool) -> dict:
        from .compiled import compiled
        from .release.older_torch import notice_deaths

        operations = self.mode.operations  # the program's: what settles makes some
        self.progress.on_step = None
        self.progress.updates.goes_on()
        if settle:
            _settle_backward_threads()
        if self.beyond.on and not self.stopped:
            self.stopped_by, self.stopped = "loop", self.beyond.words()
        notice_deaths()
        peaks = self._peaks()
        if self.watch is not None:
            self.watch.write()
        compiled.tell_estimates(self)
        self.rank.end(peaks)
        if self.for_ranks and os.environ.get("LOCAL_RANK", "0") != "0" and self.device.stats(0).allocations:
            Unplannable(
                f"cuda:0 is used by several ranks of a machine (rank {os.environ['LOCAL_RANK']} as well as the first), and each was planned alone: torch.cuda.set_device(LOCAL_RANK) gives each its own"
            )
        return {**peaks, "operations": operations}

    def write(self) -> None:
        if self.progress.on_round is not None:
            self.holders.look(last=not self.stopped)
            self.holders.write(self.device)

    def told(self) -> dict:
        from .program.beyond_loops import not_reached

        seen, turns = self.remedies.seen, [turn[1] for turn in self.progress.turns.values()]
        offers = [] if is_trial(self.options) else self.remedies.offers()
        phases = self.progress.phases.all_seen(bool(self.stopped))
        return {
            "last_was_out_of_memory": self.memory.allocations_at_failure == self.memory.allocations(),
            "steps": self.progress.steps,
            "optimizers": self.progress.optimizers,
            "most_turns": max(turns, default=0),
            "least_turns": min(turns, default=0),
            "alike_from": self.each_step.last_other,
            "loop": self.loop_rounds.summary(),
            "rising": self.beyond.rising(),
            "training_batch": self.beyond.training_batch,
            "ranks": self.rank.world or 0,
            "changes": self.remedies.applied(),
            "uses": sorted(seen.uses | self._trains_by()),
            "offers": offers,
            "number_offers": self.remedies.of_numbers(),
            "phases": phases,
            "not_reached": not_reached(phases) if self.stopped or self.problem else [],
            "lasting": seen.lasting,
            "numbers": seen.numbers,
            "accumulation": self.remedies.accumulation() if offers or seen.numbers else [],
            "token_lengths": sorted(seen.token_lengths)[-100:],
            "asked_free": self.api.asked_free_line,
        }

    def _trains_by(self) -> set[str]:
        made = {"optimizer"} if self.progress.phases.has_optimizer else set()
        return made | ({"backward"} if self.progress.saw_backward else set())


def ranks_on_machine() -> int:
    """By what a launcher told this process; 1: it has none."""
    told = os.environ.get("LOCAL_WORLD_SIZE") or "1"
    return int(told) if told.isdigit() and 0 < int(told) <= 64 else 1


def _asked_for(problem: BaseException) -> int:
    from .tensors import places

    found = re.search(rf"{places.ASKED_FOR} cuda:(\d+)", str(problem))
    return int(found[1]) if found else 1


def _spawned(problem: BaseException) -> int:
    found = re.search(r"one of (\d+) processes that it started", str(problem))
    return int(found[1]) if found else 1


def _more_gpus(index: int, started: int) -> str:
    """What was asked for; what to type is known to the verb."""
    from .tensors import places

    planned = "one GPU is" if places.count == 1 else f"{places.count} GPUs are"
    ranks = f" in one of the {started} processes that it started" if started > 1 else ""
    return (
        f"the program uses more GPUs than the plan has: {places.ASKED_FOR} cuda:{index}{ranks}, and {planned} planned."
    )


def _settle_backward_threads() -> None:
    """Returns when autograd's threads, one for each GPU it can count, have started and have let go of the last backward pass.

    PyTorch reports a pass as done before the GPU's thread has dropped it, and a pass holds Python objects (since 2.13 the caller's context). A
    thread that drops them, or that only now starts, while the interpreter shuts down asks for a GIL it can no longer have, and the process
    aborts: a program that ends with its backward pass does so now and then.
    """
    import torch

    from .program.progress import empty_backward

    for index in range(torch.iinfo(torch.int8).max):
        try:
            empty_backward(index)
        except RuntimeError:
            return  # there are no more


def begin(options: dict) -> Session:
    if current() is None:
        session = DryRunSession(options)
        make_current(session)
        session.start()
        atexit.register(session.finish)
    return current()
