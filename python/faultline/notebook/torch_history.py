"""PyTorch's own memory history around one cell: switched on where nobody has, a snapshot where memory ran out and at the end, and all as it was before."""

from __future__ import annotations

import sys
import time

from .._import_watch import ImportWatch
from ..run.around import around

_ENTRIES = 200_000


class TorchHistory:
    _observed = None  # the one that is on now; PyTorch's observers cannot be taken away again
    _observes = False

    def __init__(self):
        self.notes = []
        self.at_failure = None  # PyTorch's snapshot when memory ran out first
        self.began_us = 0
        self.was_running = False  # CUDA had begun before the cell
        self.by_user = False
        self._is_ours = False
        self._record = self._watch = None

    # --- around the cell

    def begin(self):
        self.began_us = time.time_ns() // 1000
        TorchHistory._observed = self
        torch = sys.modules.get("torch")
        if torch is None:
            self._watch = ImportWatch(("torch",), lambda _name, module: self._quietly(self._await_cuda, module))
        else:
            self._quietly(self._await_cuda, torch)

    def _await_cuda(self, torch):
        self.was_running = torch.cuda.is_initialized()
        torch.cuda._lazy_call(self._cuda_begins)  # at once where it has begun

    def _cuda_begins(self):
        if TorchHistory._observed is self:
            self._quietly(self._start, sys.modules["torch"])

    def _start(self, torch):
        memory = torch.cuda.memory
        self.by_user = is_recording(torch)
        if not self.by_user:
            record = memory._record_memory_history
            record(enabled="all", context="alloc", stacks="python", max_entries=_ENTRIES)
            self._is_ours, self._record = True, record
            memory._record_memory_history = around(record, self._user_records)
        observe = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)
        if observe is not None and not TorchHistory._observes:
            TorchHistory._observes = True
            observe(_out_of_memory)

    def _user_records(self, *_args, **_kwargs):
        self._is_ours, self.by_user = False, True  # from here on it is the user's

    def end(self):
        """The snapshot at the end; None where PyTorch had nothing on the GPU. The user's settings are those of before."""
        TorchHistory._observed = None
        if self._watch is not None:
            self._watch.stop()
        torch = sys.modules.get("torch")
        taken = None
        try:
            if torch is not None and torch.cuda.is_initialized():
                taken = self._quietly(torch.cuda.memory._snapshot)
        finally:
            if self._record is not None:
                torch.cuda.memory._record_memory_history = self._record
            if self._is_ours:
                self._quietly(self._record, enabled=None)
        return taken

    def take_failure(self):
        if self.at_failure is None:
            self.at_failure = self._quietly(sys.modules["torch"].cuda.memory._snapshot)

    def _quietly(self, part, *arguments, **named):
        try:
            return part(*arguments, **named)
        except Exception as problem:
            first = next(iter(str(problem).splitlines()), "")
            self.notes.append(f"PyTorch's memory cannot be watched in full here ({type(problem).__name__}: {first}).")
            return None


def _out_of_memory(*_numbers):
    if TorchHistory._observed is not None:
        TorchHistory._observed.take_failure()


def is_recording(torch) -> bool:
    """Does the user's own program record the history?"""
    ask = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if ask is not None:
        return bool(ask())
    return any(torch.cuda.memory._snapshot().get("device_traces") or ())
