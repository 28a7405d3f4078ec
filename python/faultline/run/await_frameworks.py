"""Waits in every Python process of a recorded program until a GPU framework is imported.

Most processes (a shell's helpers, data workers) never import one, and pay for this file alone: nothing heavy may be imported here. When a
framework's import is complete, faultline.run.recording takes over. Nothing is asked of the GPU then; that waits until the program does it.
"""

import atexit
import os
import time

from .._import_watch import ImportWatch
from .._private import private
from . import FRAMEWORKS

folder = ""
start_ns = 0
_recording = None
_watch = None


def recording():
    global _recording
    if _recording is None:
        from .recording import Recording

        _recording = Recording(folder, start_ns)
    return _recording


def before_import(name):
    if name in ("jax", "tensorflow") and os.environ.get("FAULTLINE_RUN_OPTIONS"):
        try:
            recording().before_import(name)
        except Exception as problem:
            trouble(problem)


def after_import(name, module):
    try:
        recording().after_import(name, module)
    except Exception as problem:
        trouble(problem)


def trouble(problem):
    """Our own trouble is told in the run's folder; the program's output stays its own."""
    try:
        with open(os.path.join(folder, f"notes-{os.getpid()}.txt"), "a", encoding="utf-8", opener=private) as file:
            file.write(
                f"the Python side of the recording failed in this process ({type(problem).__name__}: {problem})\n"
            )
    except OSError:
        pass


def _at_exit():
    if _recording is not None:
        try:
            _recording.at_exit()
        except Exception as problem:
            trouble(problem)


def _after_fork():
    global start_ns
    start_ns = time.time_ns()
    if _recording is not None:
        _recording.after_fork(start_ns)


def arm(run_folder):
    global folder, start_ns, _watch
    folder, start_ns = os.path.abspath(run_folder), time.time_ns()
    atexit.register(_at_exit)  # registered first, so called last: what the program does at its exit is seen too
    os.register_at_fork(after_in_child=_after_fork)
    _watch = ImportWatch(FRAMEWORKS, after_import, before_import)
