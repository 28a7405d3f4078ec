"""Tells the capture library where training steps end and where backward begins and ends, so that its events can be placed in them."""

import os
import sys

from .around import around, as_library


class StepMarks:
    def __init__(self):
        self._on = False
        self._installed = False
        self._steps = 0

    def start(self, torch):
        """Nothing is installed in a process that does not have the library."""
        self._on = self._installed or self._find_library()
        if not self._on or self._installed:
            return
        self._installed = True
        self._compiling = getattr(torch.compiler, "is_compiling", None) or torch._utils.is_compiling
        sys.modules[torch.optim.Optimizer.__module__].register_optimizer_step_post_hook(self._step)
        run = getattr(torch.autograd.graph, "_engine_run_backward", None)
        if run is None:
            torch.autograd.backward = around(torch.autograd.backward, self._backward_begins, self._backward_ends)
            return
        watched = around(run, self._backward_begins, self._backward_ends)
        torch.autograd.graph._engine_run_backward = watched
        if getattr(torch.autograd, "_engine_run_backward", None) is run:
            torch.autograd._engine_run_backward = watched

    def stop(self):
        self._on = False

    def _find_library(self):
        import ctypes

        path = os.environ.get("FAULTLINE_CAPTURE_LIBRARY")
        for name, mode in (
            (None, ctypes.DEFAULT_MODE),
            (path, os.RTLD_NOLOAD | os.RTLD_LAZY),
        ):  # only where it is loaded already
            try:
                if name is None or path:
                    library = ctypes.PyDLL(
                        name, mode=mode
                    )  # the functions are short and know no Python: the GIL is kept
                    self._mark_step, self._mark_begin, self._mark_end = (
                        library.faultline_mark_step,
                        library.faultline_mark_begin,
                        library.faultline_mark_end,
                    )
                    self._mark_step.argtypes = (ctypes.c_char_p, ctypes.c_uint64)
                    self._mark_begin.argtypes = self._mark_end.argtypes = (ctypes.c_char_p,)
                    self._mark_step.restype = self._mark_begin.restype = self._mark_end.restype = None
                    return True
            except (OSError, AttributeError):
                continue
        return False

    @as_library
    def _step(self, _optimizer, _args, _kwargs):
        if self._on and not self._compiling():  # a compiled step has no room for it
            self._mark_step(b"optimizer.step", self._steps)
            self._steps += 1

    @as_library
    def _backward_begins(self, *_args, **_kwargs):
        if self._on:
            self._mark_begin(b"backward")

    @as_library
    def _backward_ends(self):
        if self._on:
            self._mark_end(b"backward")
