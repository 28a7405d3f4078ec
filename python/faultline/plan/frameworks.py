"""Hooks into PyTorch's Python code: steps, modules, backward, attention, recurrent layers, compile, and what a dry run must not do."""
from __future__ import annotations

import sys

import torch

from . import recurrent, sdpa


def install(session) -> None:
    _watch(session)
    _choose_kernels(session)
    _run_eagerly(session)
    _write_nothing(session)
    from . import changes
    changes.install(session)


def _watch(session) -> None:
    marks = session.marks
    torch.nn.modules.module.register_module_forward_pre_hook(marks.enter_module)
    torch.nn.modules.module.register_module_forward_hook(marks.leave_module, always_call=True)
    sys.modules[torch.optim.Optimizer.__module__].register_optimizer_step_post_hook(marks.step)
    run = torch.autograd.graph._engine_run_backward
    watched = marks.around_backward(run)
    torch.autograd.graph._engine_run_backward = watched
    if getattr(torch.autograd, "_engine_run_backward", None) is run:
        torch.autograd._engine_run_backward = watched


def _choose_kernels(session) -> None:
    sdpa.install(session)
    recurrent.install(session)


def _run_eagerly(session) -> None:
    """torch.compile takes other memory than eager execution, mostly less; a dry run shows the eager program and says so."""
    def compile(model=None, **options):
        if model is None:
            return lambda function: compile(function, **options)
        session.notes.add("mode", "torch.compile was not applied: the plan shows the eager program, which usually needs more memory than the compiled one")
        return model
    torch.compile = compile
    torch.nn.Module.compile = lambda module, *args, **kwargs: compile(module) and None


def _write_nothing(session) -> None:
    """A checkpoint written by a dry run would hold no weights, and might replace one that does."""
    def save(obj, f, *args, **kwargs):
        session.notes.add("skipped", f"torch.save wrote nothing to {f!r}" if isinstance(f, str) else "torch.save wrote nothing")
    torch.save = save
    torch.serialization.save = save
