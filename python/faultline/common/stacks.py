"""Python stacks as ids of the trace.

A stack is walked at every allocation, so the way from a frame to its id is one dictionary look-up per frame: (caller's stack, code, instruction).
Frames of Faultline itself are left out. Backward runs on PyTorch's own threads, which have no Python frames of the program: there the stack of
the call to backward stands before whatever frames the thread has (hooks, custom functions, recomputed forwards).
"""

from __future__ import annotations

import dis
import sys
import threading
from types import CodeType, FrameType

from .._file_owner import is_generated, is_library, is_own

_THREAD_STARTS = {"_bootstrap", "<module>", "_run_module_as_main"}


class Stacks:
    def __init__(self, device):
        self._device = device
        self._nodes: dict[tuple[int, CodeType, int], int] = {}
        self._places: dict[CodeType, bool] = {}
        self._backward: list[int] = []  # stacks of the calls to backward that are running

    def _is_ours(self, code: CodeType) -> bool:
        known = self._places.get(code)
        if known is None:
            known = self._places[code] = is_own(code.co_filename)
        return known

    def push(self, caller: int, frame: FrameType) -> int:
        key = (caller, frame.f_code, frame.f_lasti)
        known = self._nodes.get(key)
        if known is None:
            code = frame.f_code
            number = self._device.frame(
                getattr(code, "co_qualname", code.co_name).rpartition(".")[2] or code.co_name,
                f"<generated> {code.co_filename}" if is_generated(code.co_filename) else code.co_filename,
                frame.f_lineno or 0,
            )
            known = self._nodes[key] = self._device.stack(caller, number)
        return known

    def here(self, frame: FrameType | None = None) -> int:
        """The stack of the caller of Faultline's code on this thread."""
        frames = []
        frame = frame or sys._getframe(1)
        while frame is not None:
            if not self._is_ours(frame.f_code):
                frames.append(frame)
            last, frame = frame, frame.f_back
        stack = 0
        if (
            self._backward
            and last.f_code.co_name not in _THREAD_STARTS
            and threading.current_thread() is not threading.main_thread()
        ):
            stack = self._backward[-1]
        for frame in reversed(frames):
            stack = self.push(stack, frame)
        return stack

    def innermost(self, stack: int) -> str:
        """The line of a stack's last frame, "cache.py:12"."""
        for (_caller, code, instruction), number in self._nodes.items():
            if number == stack:
                line = max(
                    (at for at in dis.findlinestarts(code) if at[0] <= instruction), default=(0, code.co_firstlineno)
                )[1]
                return f"{code.co_filename}:{line}"
        return ""

    def enter_backward(self) -> None:
        self._backward.append(self.here(sys._getframe(1)))

    def leave_backward(self) -> None:
        self._backward.pop()


def user_line() -> str:
    """The innermost line of the program itself, "train.py:12", for a note to the user."""
    frame = sys._getframe(1)
    fallback = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_own(name):
            if not is_library(name):
                return f"{name}:{frame.f_lineno}"
            fallback = fallback or f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return fallback
