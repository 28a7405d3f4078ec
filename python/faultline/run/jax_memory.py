"""JAX's memory when it runs out: its own profile of the arrays that are alive, each with the line that made it; and errors of arrays that nobody read. Over time: jax_looks.py.

JAX computes behind the program's back: an array whose computation failed raises when it is read, and where the program never reads it nobody hears of it. At the exit, before JAX itself puts
things away, the arrays that are alive and ready are asked. Nothing is waited for, and nothing of JAX's is begun that the program did not begin.
"""

import atexit
import os
import sys
from functools import partial

from .exceptions import kind_of
from .jax_looks import Looks, failure_profile_name
from .process import describe, words_of

_MOST_ARRAYS = 10000


class JaxMemory:
    def __init__(self, recording, jax):
        self._recording, self._jax = recording, jax
        self._pid = os.getpid()
        self._has_profile = False
        self._looks = None
        if recording.options["history"]:
            try:
                self._looks = Looks(recording.process, jax, self._has_begun)
            except Exception as problem:
                recording.process.note(
                    f"JAX's arrays are not looked at over time: this release has no word for that ({type(problem).__name__}: {problem})"
                )
        atexit.register(self._at_exit)  # behind JAX's own, so called before it

    def after_fork(self):
        self._pid = None  # JAX does not survive a fork
        if self._looks is not None:
            self._looks.after_fork()

    def _has_begun(self):
        bridge = sys.modules.get("jax._src.xla_bridge")
        return self._pid == os.getpid() and bool(getattr(bridge, "_backends", None))

    def profile(self):
        """jax-<pid>-oom-<microseconds>.prof: at the first failure, when what fills the memory is there."""
        if self._has_profile or not self._has_begun():
            return
        self._has_profile = True
        try:
            taken = self._jax.profiler.device_memory_profile()
            name = failure_profile_name(self._pid)
            self._recording.process.save(name, lambda file: file.write(taken), may_be_large=True)
            self._recording.process.know(pools=dict(self._pools()))
        except Exception as problem:
            self._recording.process.note(
                f"JAX gave no profile of its memory ({type(problem).__name__}: {next(iter(str(problem).splitlines()), '')})"
            )

    def _pools(self):
        """The limit of each GPU's pool, by the pool's name."""
        for device in self._jax.local_devices():
            stats = device.memory_stats() if device.platform != "cpu" else None
            if stats and stats.get("bytes_limit"):
                yield (
                    f"GPU_{device.id}_bfc",
                    {"limit": stats["bytes_limit"], "peak_in_use": stats.get("peak_bytes_in_use")},
                )

    def _at_exit(self):
        if self._looks is not None:
            self._looks.end()
        try:
            if self._has_begun() and not self._recording.process.knows("exception"):
                self._ask_arrays()
        except Exception as problem:
            self._recording.process.note(
                f"JAX's arrays could not be asked at the exit ({type(problem).__name__}: {problem})"
            )

    def _ask_arrays(self):
        told = set()
        for array in self._jax.live_arrays()[:_MOST_ARRAYS]:
            try:
                if array.is_deleted() or not array.is_ready():
                    continue
                array.block_until_ready()
            except Exception as problem:
                kind = kind_of(problem)
                if kind and str(problem) not in told and len(told) < 4:
                    told.add(str(problem))
                    thread = "an array that nobody read"
                    words = partial(words_of, problem, None)
                    self._recording.uncaught(describe(problem, None, thread, kind), False, words)
