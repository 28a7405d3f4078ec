"""How a planned program ends: by an exception of its own, which is shown as without a dry run, or by the dry run's stop, which is a SystemExit."""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
import types

from ..._file_owner import is_library, is_own

GRACE_SECONDS = 10  # for a program's own clean-up after it is stopped


class PlanComplete(SystemExit):
    """The plan has seen enough."""


def complete(end_now) -> None:
    """Ends the program as sys.exit() would; where it catches that and does nothing more on the GPU, end_now() is called a while later."""
    last = threading.Timer(2 * GRACE_SECONDS, end_now)
    last.daemon = True
    last.start()
    raise PlanComplete(0)


def end_caught(notes, finish) -> None:
    """The program has caught the stop (`except BaseException`) and goes on: its process is ended, with what was seen."""
    notes.add("mode", "the program caught the dry run's stop and went on; it was stopped there", "")
    finish()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
    os._exit(0)


def around_excepthook(before, note_death):
    """The program's exception is noted, and shown as without a dry run."""

    def faultline(kind, problem, trace):
        note_death(problem, trace)
        trace = without_own_frames(trace)
        for earlier in causes_of(problem):
            earlier.__traceback__ = without_own_frames(earlier.__traceback__)
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


def causes_of(problem: BaseException | None):
    """It, and what was being handled when it was raised."""
    seen = set()
    while problem is not None and id(problem) not in seen:
        yield problem
        seen.add(id(problem))
        problem = problem.__cause__ or problem.__context__


def process_began() -> float:
    """When this process was started, in seconds since the machine was: processes that are started together would run together, however long each takes to import its framework."""
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def now_on_the_machine() -> float:
    """On the clock of process_began()."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
