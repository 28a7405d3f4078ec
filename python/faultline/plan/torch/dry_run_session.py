"""Starts the dry run in this process, once PyTorch is imported, and ends it when the program does."""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import sys
import threading
import time
import traceback
import types

from ..._file_owner import is_library, is_own
from ..._private import private
from ...common.stacks import user_line
from ..session.gpu import Gpu, VisibleGpus
from ..source import vary

_session = None
_STOP_MARK = "dry run stopped"  # what is let go after it the stop let go (facts/growth.h)
GRACE_SECONDS = 10  # for a program's own clean-up after it is stopped


class PlanComplete(SystemExit):
    """The plan has seen enough."""


class DryRunSession:
    """Everything that one process's dry run holds."""

    def __init__(self, options: dict):
        from ...common.stacks import Stacks
        from ..session.device import Device
        from ..session.notes import Notes
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

        self.release = releases.now()
        self.gpus = [Gpu.of(entry) for entry in options.get("gpus") or [options["gpu"]]]
        on_machine = ranks_on_machine()
        self.for_ranks = len(self.gpus) == 1 < on_machine
        if self.for_ranks:  # each rank has one
            self.gpus *= on_machine
        self.options = options
        no_gpu.prepare(options["library"])
        places.install(options["library"], len(self.gpus))
        trace = os.path.join(options["folder"], f"process-{os.getpid()}.faultline")
        first = self.gpus[0]
        self.device = Device(
            options["library"],
            trace,
            first.name,
            first.capacity_bytes,
            first.context_bytes,
            next((os.environ[name] for name in self.release.settings_variables if os.environ.get(name)), ""),
            self.release.name,
        )
        for gpu in self.gpus[1:]:
            self.device.add(gpu.name, gpu.capacity_bytes, gpu.context_bytes)
        self.notes = Notes()
        if unknown := releases.unknown():
            self.notes.add("mode", unknown, "")
        if self.for_ranks:
            self.notes.add(
                "mode",
                f"one GPU is named and {on_machine} ranks run on a machine: so many of that kind were planned, one for each, as --gpu {on_machine}xNAME does",
                "",
            )
        self.memory = Memory(self.device, Stacks(self.device))
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
        self.problem = None
        self.died_of_memory = False
        self.decided_by_stand_in = True  # if it ends by a status of its own
        self.stopped = self.stopped_by = None
        self.first_step = None  # when it was over: the wall's clock, the process's
        self.owner = os.getpid()
        vary.note_main()
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
        if not self.options.get("changes") and not self.options.get("vary"):
            self.progress.on_round = self.holders.came_round
        self.progress.before_first_backward = functools.partial(accumulation.learn, self.memory)
        self.mode.deadline = self.started + self.options["seconds"] if self.options.get("seconds") else None
        self.mode.on_deadline = self._out_of_time
        self.mode.__enter__()
        self._other_threads()
        sys.excepthook = around_excepthook(sys.excepthook, self.note_death)
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
        if self.beyond.on:
            self._stop("loop", self.beyond.words())
        else:
            self._stop("seconds", f"after {self.options['seconds']} seconds")

    def _stop(self, by: str, why: str) -> None:
        """Ends the program as sys.exit() would: its own clean-up still runs. `by` is a word of StoppedBy (src/plan/plan.h), `why` is for people."""
        self.stopped_by, self.stopped = by, why
        if self.progress.on_round is not None:
            self.holders.look(last=True)
        if self.progress.steps == 0:
            self.loop_rounds.stopped()
        self.beyond.stopped()
        here = self.memory.stacks.here()
        self.device.op_begin(_STOP_MARK, here)
        self.device.op_end("", False, here)
        self.mode.deadline, self.mode.on_deadline = time.monotonic() + GRACE_SECONDS, self._end_now
        complete(self._end_now)

    def _end_now(self) -> None:
        end_caught(self.notes, lambda: self.finish(settle=False))

    def _forked(self) -> None:
        self.device.leave_to_parent()
        self.mode.on_gpu_after_fork = self._gpu_after_fork

    def _gpu_after_fork(self) -> None:
        """What a forked process does on the GPU is not followed: said once, in the place of its summary."""
        self.mode.on_gpu_after_fork = None
        leave_summary(
            self.options,
            {
                "operations": 0,
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

    def note_death(self, problem: BaseException, trace) -> None:
        """The exception that ended the program, with its line."""
        from ..session.unplannable import Unplannable, first_sentence, of_lost_threads, of_missing_cuda, of_own_mistake
        from .tensors import places

        if os.getpid() != self.owner or isinstance(problem, (KeyboardInterrupt, SystemExit)):
            return
        place = place_of_death(trace)
        # Operations that refuse their operands are the program's affair; what it decides by values that were not computed is not.
        decided = isinstance(
            problem, (ValueError, ArithmeticError, AssertionError, LookupError, RuntimeError)
        ) and not self.progress.has_failed(problem)
        self.decided_by_stand_in = decided and bool(self.notes.stand_in_read)
        self.died_of_memory = comes_of_memory(problem)
        if places.ASKED_FOR in str(problem):
            Unplannable(
                _more_gpus(_asked_for(problem), _spawned(problem)),
                f"{place.filename}:{place.lineno}" if place else None,
            )
        if limit := of_missing_cuda(problem) or of_lost_threads(problem) or of_own_mistake(problem, trace):
            Unplannable(limit)
        self.problem = {
            "type": type(problem).__name__,
            "message": first_sentence(str(problem)),
            "file": place.filename if place else "",
            "line": place.lineno if place else 0,
            "function": place.name if place else "",
        }

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
            "allocated": most.allocated_bytes,
            "allocations": sum(s.allocations for s in each),
            "ooms": sum(s.out_of_memories for s in each),
        }

    def finish(self, settle: bool = True) -> None:
        if os.getpid() != self.owner or self.memory.closed:
            return
        from ..session.unplannable import Unplannable
        from .compiled import compiled
        from .program.beyond_loops import not_reached
        from .release.older_torch import notice_deaths

        operations = self.mode.operations  # the program's: what settles makes some
        self.progress.on_step = None
        self.progress.updates.goes_on()
        if settle:
            _settle_backward_threads()
        if self.beyond.on and not self.stopped:
            self.stopped_by, self.stopped = "loop", self.beyond.words()
        notice_deaths()
        peaks, seconds = self._peaks(), round(time.monotonic() - self.started, 2)
        if self.watch is not None:
            self.watch.write()
        compiled.tell_estimates(self)
        self.rank.end(peaks)
        if self.for_ranks and os.environ.get("LOCAL_RANK", "0") != "0" and self.device.stats(0).allocations:
            Unplannable(
                f"cuda:0 is used by several ranks of a machine (rank {os.environ['LOCAL_RANK']} as well as the first), and each was planned alone: torch.cuda.set_device(LOCAL_RANK) gives each its own"
            )
        self.notes.tell_decided(self.mode.looks())
        self.notes.write(self.device)
        if self.progress.on_round is not None:
            self.holders.look(last=not self.stopped)
            self.holders.write(self.device)
        if self.stopped:
            self.device.property("dry-run.stopped", self.stopped)
        if self.problem:
            self.device.property("dry-run.exception", json.dumps(self.problem))
        if trouble := self.device.problem():
            Unplannable(f"what the program does was not recorded to its end: {trouble}")
        offers = self.remedies.offers() if not self.options.get("changes") and not self.options.get("vary") else []
        self.memory.closed = True
        self.summary = {
            **peaks,
            "operations": operations,
            "exception": self.problem,
            "stopped": self.stopped,
            "stopped_by": self.stopped_by,
            "steps": self.progress.steps,
            "optimizers": self.progress.optimizers,
            "most_turns": max((turn[1] for turn in self.progress.turns.values()), default=0),
            "least_turns": min((turn[1] for turn in self.progress.turns.values()), default=0),
            "alike_from": self.each_step.last_other,
            "loop": self.loop_rounds.summary(),
            "rising": self.beyond.rising(),
            "training_batch": self.beyond.training_batch,
            "ranks": self.rank.world or 0,
            "framework": f"PyTorch {sys.modules['torch'].__version__}",
            "seconds": seconds,
            "changes": self.remedies.applied(),
            "uses": sorted(self.remedies.seen.uses | self._trains_by()),
            "offers": offers,
            "phases": (phases := self.progress.phases.all_seen(bool(self.stopped))),
            "not_reached": not_reached(phases) if self.stopped or self.problem else [],
            "lasting": self.remedies.seen.lasting,
            "numbers": self.remedies.seen.numbers,
            "accumulation": self.remedies.accumulation() if offers or self.remedies.seen.numbers else [],
            "token_lengths": sorted(self.remedies.seen.token_lengths)[-100:],
            "vary": {"found": vary.found} if vary.found else None,
            "asked_free": self.api.asked_free_line,
            "unsupported": None,
            "unplanned": Unplannable.first,
            "began": process_began(),
            "ended": time.clock_gettime(time.CLOCK_BOOTTIME),
            "died_of_memory": self.died_of_memory,
            "last_was_out_of_memory": self.memory.allocations_at_failure == self.memory.allocations(),
            "stand_in": self.notes.stand_in_read if self.decided_by_stand_in else "",
        }
        self.device.close()
        leave_summary(self.options, self.summary)

    def _trains_by(self) -> set[str]:
        made = {"optimizer"} if self.progress.phases.has_optimizer else set()
        return made | ({"backward"} if self.progress.saw_backward else set())

    def step_aside(self) -> None:
        """Another framework is the one that uses the GPU."""
        self.memory.closed = True
        self.device.close()
        os.unlink(os.path.join(self.options["folder"], f"process-{os.getpid()}.faultline"))


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
    """What was asked for, and what to type; how the GPU and the command are called is known to the verb."""
    from .tensors import places

    planned = "one GPU is" if places.count == 1 else f"{places.count} GPUs are"
    ranks = f" in one of the {started} processes that it started" if started > 1 else ""
    return (
        f"the program uses more GPUs than the plan has: {places.ASKED_FOR} cuda:{index}{ranks}, and {planned} planned. "
        f"To plan so many, type: faultline plan --gpu {max(index + 1, started, ranks_on_machine())}xNAME -- COMMAND"
    )


def process_began() -> float:
    """When this process was started, in seconds since the machine was: processes that are started together would run together, however long each takes to import PyTorch."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def comes_of_memory(problem: BaseException | None) -> bool:
    """Is it an out-of-memory, or was it raised while one was handled?"""
    from .release.older_torch import OutOfMemoryError

    seen = set()
    while problem is not None and id(problem) not in seen:
        if isinstance(problem, OutOfMemoryError):
            return True
        seen.add(id(problem))
        problem = problem.__cause__ or problem.__context__
    return False


def leave_summary(options: dict, summary: dict) -> None:
    try:
        with open(
            os.path.join(options["folder"], f"process-{os.getpid()}.json"), "w", encoding="utf-8", opener=private
        ) as file:
            json.dump(summary, file)
    except OSError:
        pass  # the verb finds none, and says so


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


def around_excepthook(before, note_death):
    """The program's exception is noted, and shown as without a dry run."""

    def faultline(kind, problem, trace):
        note_death(problem, trace)
        trace = without_own_frames(trace)
        before(kind, problem.with_traceback(trace), trace)

    return faultline


def place_of_death(trace):
    """The innermost frame that is the program's own, else the innermost; None: a traceback without frames."""
    frames = traceback.extract_tb(trace)
    own = [f for f in frames if not is_library(f.filename) and not is_own(f.filename)]
    return (own or list(frames) or [None])[-1]


def without_own_frames(trace):
    """The program's traceback as it would be without Faultline."""
    kept = []
    while trace is not None:
        if not is_own(trace.tb_frame.f_code.co_filename):
            kept.append(trace)
        trace = trace.tb_next
    result = None
    for entry in reversed(kept):
        result = types.TracebackType(result, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return result


def complete(end_now) -> None:
    """Ends the program as sys.exit() would; where it catches that and does nothing more on the GPU, end_now() is called a while later."""
    last = threading.Timer(2 * GRACE_SECONDS, end_now)
    last.daemon = True
    last.start()
    raise PlanComplete(0)


def end_caught(notes, finish) -> None:
    """The program has caught the stop (`except BaseException`) and goes on: its process is ended, with what was seen."""
    notes.add("mode", "the program caught the dry run's stop and went on; it was ended there", "")
    finish()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(0)


def current() -> DryRunSession | None:
    return _session


def make_current(session) -> None:
    """A framework with a pool of its own (pool_session.py) turned out to be the one that uses the GPU."""
    global _session
    _session = session


def begin(options: dict) -> DryRunSession:
    global _session
    if _session is None:
        _session = DryRunSession(options)
        _session.start()
        atexit.register(_session.finish)
    return _session
