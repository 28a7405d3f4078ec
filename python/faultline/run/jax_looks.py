"""JAX's arrays over time: its own profile of what is alive, taken again and again by a thread of its own, as jax-<pid>-<microseconds>.prof.

A profile names lines and counts and holds no array, so nothing lives longer for being looked at. It begins with the first program that JAX compiles, when the device is in use. A look costs
about a millisecond; the next comes after a hundred times what it cost, and a tenth of a second at least. When there are forty of them every second one goes, and the time between them doubles.
"""

import _thread
import os
import time

_LEAST_SECONDS = 0.1
_MOST_SHARE = 100  # of the time, one part
_MOST_LOOKS = 40
_MOST_BYTES = 4 << 20  # of one
_END_SECONDS = 1.0
_COMPILED = ("/jax/core/compile/backend_compile", "/jax/compilation_cache/")


def failure_profile_name(pid):
    """Of the profile that is taken when memory ran out."""
    return f"jax-{pid}-oom-{time.time_ns() // 1000}.prof"


class Looks:
    def __init__(self, process, jax, has_begun):
        self._process, self._jax, self._has_begun = process, jax, has_begun
        self._kept = []  # microseconds
        self._seconds = _LEAST_SECONDS
        self._stop, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._pid = None
        self._is_over = False
        self._begin_lock = _thread.allocate_lock()
        jax.monitoring.register_event_duration_secs_listener(self._on_event)

    def _on_event(self, event, _seconds, **_more):
        if self._pid is not None or not event.startswith(_COMPILED) or not self._has_begun():
            return
        with self._begin_lock:
            if self._pid is not None:
                return
            self._pid = os.getpid()
            self._stop.acquire()
            self._ended.acquire()
            try:
                _thread.start_new_thread(self._go, ())
            except RuntimeError:  # no more threads: the program needs them more than we do
                self._ended.release()

    def after_fork(self):
        self._pid = 0  # the thread stayed with the parent

    def end(self):
        """The last look, when the program is over."""
        if self._is_over or self._pid != os.getpid() or not self._stop.locked():
            return
        self._is_over = True
        self._stop.release()
        if self._ended.acquire(timeout=_END_SECONDS):
            self._look()

    def _go(self):
        pause = self._seconds
        try:
            while not self._stop.acquire(timeout=pause):
                began = time.thread_time()  # what waits for the program costs it nothing
                if not self._look():
                    break
                pause = max(self._seconds, _MOST_SHARE * (time.thread_time() - began))
        finally:
            self._ended.release()

    def _look(self):
        """False where no further one is wanted."""
        try:
            taken = self._jax.profiler.device_memory_profile()
        except Exception as problem:
            self._process.note(f"JAX's arrays were not looked at over time ({type(problem).__name__}: {problem})")
            return False
        now = time.time_ns() // 1000
        if len(taken) > _MOST_BYTES:
            self._process.note(
                f"JAX's arrays were not looked at over time to the end: a profile of them had more than {_MOST_BYTES >> 20} MiB"
            )
            return False
        if not self._process.save(self._name(now), lambda file: file.write(taken), may_be_large=True):
            return False
        self._kept.append(now)
        if len(self._kept) >= _MOST_LOOKS:
            for old in self._kept[1::2]:
                _remove(os.path.join(self._process.folder, self._name(old)))
            self._kept = self._kept[::2]
            self._seconds *= 2
        return True

    def _name(self, microseconds):
        return f"jax-{self._pid}-{microseconds}.prof"


def _remove(path):
    try:
        os.unlink(path)
    except OSError:
        pass
