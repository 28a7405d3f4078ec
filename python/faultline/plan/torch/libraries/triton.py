"""Kernels written in triton are not launched: they take no memory of PyTorch's, and what they write is not known."""

from __future__ import annotations

import sys

from ...._import_watch import ImportWatch


class Launched:
    """What a launch gives: nobody asks it for more than figures."""

    n_regs = n_spills = num_warps = shared = 0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def launched(session, args, kwargs) -> Launched:
    import torch

    session.notes.add(
        "kernel",
        "triton kernels were not launched: what they write is not known, and what they take in registers and shared memory is not GPU memory",
    )
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor) and value.is_cuda and not session.values.everything:
            record = session.memory.find(value)
            if record is not None and record.shadow is not None:
                session.values.assume(value)
    return Launched()


def install(session) -> None:
    def run(_kernel, *args, grid=None, warmup=False, **kwargs):
        return launched(session, args, kwargs)

    def after(name, module):
        for kind in ("JITFunction", "Autotuner", "Heuristics"):
            if hasattr(module, kind):
                getattr(module, kind).run = run

    for name in ("triton.runtime.jit", "triton.runtime.autotuner"):
        if name in sys.modules:
            after(name, sys.modules[name])
        else:
            ImportWatch((name,), after)
