"""Waits in every Python process of a recorded program until a GPU framework is imported.

Most processes (a shell's helpers, data workers) never import one, and pay for this file alone: nothing heavy may be imported here. When a
framework's import is complete, faultline.run.session takes over. Nothing is asked of the GPU then; that waits until the program does it.
"""
import _thread
import atexit
import os
import sys
import time

from .._private import private

FRAMEWORKS = ("torch", "jax", "tensorflow", "cupy", "numba", "pycuda", "cuda", "warp", "paddle", "mxnet", "tinygrad")

folder = ""
start_ns = 0
_session = None


class _Imports:
    def __init__(self):
        self._waiting = set(FRAMEWORKS)
        self._busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in self._waiting:
            return None
        here = (name, _thread.get_ident())
        if here in self._busy:  # another finder asks for the same module on its way
            return None
        self._busy.add(here)
        try:
            before_import(name)
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec = None if finder is self or find is None else find(name, path, target)
                if spec is not None:
                    return self._watched(name, spec)
        finally:
            self._busy.discard(here)
        return None

    def _watched(self, name, spec):
        loader = spec.loader
        load = getattr(loader, "exec_module", None)
        if load is None or isinstance(loader, type):
            return spec

        def exec_module(module):
            load(module)
            vars(loader).pop("exec_module", None)
            self._imported(name, module)
        # It runs as a part of the import system and is named so: warnings and tracebacks leave those frames out.
        exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
        try:
            loader.exec_module = exec_module
        except AttributeError:
            pass  # a loader that takes no attribute: this framework is not watched
        return spec

    def _imported(self, name, module):
        if name not in self._waiting:
            return
        self._waiting.discard(name)
        after_import(name, module)
        if name == "torch" and not session().options.get("buffers") and self in sys.meta_path:
            sys.meta_path.remove(self)


def session():
    global _session
    if _session is None:
        from . import session as module
        _session = module.Session(folder, start_ns)
    return _session


def before_import(name):
    if name in ("jax", "tensorflow") and os.environ.get("FAULTLINE_RUN_OPTIONS"):
        try:
            session().before_import(name)
        except Exception as problem:
            trouble(problem)


def after_import(name, module):
    try:
        session().after_import(name, module)
    except Exception as problem:
        trouble(problem)


def trouble(problem):
    """Our own trouble is told in the run's folder; the program's output stays its own."""
    try:
        with open(os.path.join(folder, f"notes-{os.getpid()}.txt"), "a", encoding="utf-8", opener=private) as file:
            file.write(f"the Python side of the recording failed in this process ({type(problem).__name__}: {problem})\n")
    except OSError:
        pass


def _at_exit():
    if _session is not None:
        try:
            _session.at_exit()
        except Exception as problem:
            trouble(problem)


def _after_fork():
    global start_ns
    start_ns = time.time_ns()
    if _session is not None:
        _session.after_fork(start_ns)


def arm(run_folder):
    global folder, start_ns
    folder, start_ns = os.path.abspath(run_folder), time.time_ns()
    atexit.register(_at_exit)  # registered first, so called last: what the program does at its exit is seen too
    os.register_at_fork(after_in_child=_after_fork)
    sys.meta_path.insert(0, _Imports())
