"""PyTorch's own memory history, and its snapshots in the run's folder.

All of it begins when the program itself initialises CUDA: PyTorch keeps a list of calls for that moment, and ours is one of them. Until then, and in a
program that never does, only the function that switches the history is wrapped, to hear whether the program wants its own.
"""

import os
import pickle
import time

from .around import around
from .step_marks import StepMarks

_MOST_OUT_OF_MEMORY = 3


class TorchMemory:
    def __init__(self, recording, torch):
        self._recording, self._torch = recording, torch
        self._marks = StepMarks()
        self._history = None
        self._by_program = False
        self._began_ns = None
        self.after_fork()
        memory = torch.cuda.memory
        self._record = getattr(memory, "_record_memory_history", None)
        if self._record is not None:
            memory._record_memory_history = around(self._record, self._program_records)
        torch.cuda._lazy_call(self._cuda_begins)

    def after_fork(self):
        """CUDA does not survive a fork: a child has a history, and snapshots, only of what it begins itself."""
        self._pid = None
        self._devices = []
        self._snapshots = {}  # how often each reason was met
        self._saved = set()  # reasons whose latest snapshot is on disk
        self._marks.stop()

    # --- when the program initialises CUDA

    def _cuda_begins(self):
        self._pid, self._began_ns = os.getpid(), time.time_ns()
        for part in (
            self._start_history,
            self._observe_out_of_memory,
            self._list_devices,
            lambda: self._marks.start(self._torch),
            self._recording.write,
        ):
            try:
                part()
            except (
                Exception
            ) as problem:  # each build and allocator offers something else; what is missing must not reach the program
                self._recording.process.note(
                    f"PyTorch {self._torch.__version__} cannot be watched in full here ({type(problem).__name__}: {_first_line(problem)})"
                )

    def _observe_out_of_memory(self):
        observe = getattr(self._torch._C, "_cuda_attach_out_of_memory_observer", None)
        if observe is not None:
            observe(self._out_of_memory)

    def _start_history(self):
        options = self._recording.options
        if not options["history"] or self._record is None or self._by_program:
            return
        try:
            self._record(enabled="all", context="alloc", stacks="python", max_entries=options["history_entries"])
            self._history = {"entries": options["history_entries"], "context": "alloc", "stacks": "python"}
        except Exception as problem:  # another signature, or a backend without a history
            self._recording.process.note(
                f"PyTorch {self._torch.__version__} records no memory history here, so tensors have no lines ({type(problem).__name__}: {_first_line(problem)})"
            )

    def _program_records(self, *_args, **_kwargs):
        if not self._by_program:
            self._by_program = True
            self._history = None
            self._recording.process.note(
                "the program switches PyTorch's memory history itself (_record_memory_history): its settings are kept, and tensors outside of its history have no lines"
            )

    def _list_devices(self):
        cuda = self._torch.cuda
        for index in range(cuda.device_count()):
            properties = cuda.get_device_properties(index)
            self._devices.append(
                {
                    "index": index,
                    "name": properties.name,
                    "total_bytes": properties.total_memory,
                    "compute_capability": [properties.major, properties.minor],
                }
            )

    # --- snapshots

    def _out_of_memory(self, *_numbers):
        try:
            self.snapshot("oom", most=_MOST_OUT_OF_MEMORY)
            self._recording.write()
        except Exception as problem:
            self._recording.process.note(
                f"no snapshot was taken at an out of memory ({type(problem).__name__}: {problem})"
            )

    def snapshot(self, reason, most):
        """torch-<pid>-<reason>.pickle, then -<reason>-2 and so on, `most` times in a process."""
        if self._pid != os.getpid():
            return
        self._saved.discard(reason)  # until this one is
        number = self._snapshots.get(reason, 0) + 1
        self._snapshots[reason] = number
        if number > most:
            return
        try:
            taken = self._torch.cuda.memory._snapshot()
        except Exception as problem:
            self._recording.process.note(
                f"PyTorch gave no snapshot of its memory ({reason}; {type(problem).__name__}: {_first_line(problem)})"
            )
            return
        if self._recording.process.save(
            f"torch-{self._pid}-{reason}{'' if number == 1 else f'-{number}'}.pickle",
            lambda file: pickle.dump(taken, file, protocol=4),
            may_be_large=True,
        ):
            self._saved.add(reason)

    def has_snapshot_of(self, kind):
        """Was one taken at the last error of that kind?"""
        return {"memory": "oom", "device": "error"}.get(kind) in self._saved

    # --- for the process's JSON

    def state(self):
        torch = self._torch
        if self._pid != os.getpid():
            return {"cuda": torch.version.cuda, "initialized_ns": None}
        return {
            "cuda": torch.version.cuda,
            "initialized_ns": self._began_ns,
            "devices": self._devices,
            "history": self._history,
            "history_by_program": self._by_program,
            "allocator_settings": next(
                (os.environ[v] for v in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF") if v in os.environ), ""
            ),
            "memory_fractions": self._fractions(),
            "out_of_memory_count": self._snapshots.get("oom", 0),
        }

    def _fractions(self):
        """The limit that the program has set. Only the current device is asked: asking another one could make it current."""
        cuda = self._torch.cuda
        ask = getattr(cuda, "get_per_process_memory_fraction", None)
        try:
            current = cuda.current_device() if ask is not None and cuda.is_initialized() else None
            return {} if current is None else {str(current): ask(current)}
        except Exception:
            return {}  # after an error of the device


def _first_line(problem):
    return next(iter(str(problem).splitlines()), "")
