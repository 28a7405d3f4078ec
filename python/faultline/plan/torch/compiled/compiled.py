"""torch.compile, torch.jit.script: a dry run shows the eager program, and says so with the verdict.

Of the compiled program what can be had without a GPU and a compiler is estimated: which tensors its partitioner would keep for backward (compiled_estimate.py).
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types

import torch

from ...._file_owner import is_library, is_own
from ....common.stacks import user_line
from ...session.weak_by_id import WeakById
from ..tensors.memory import gib
from ..tensors.places import here
from . import compiled_estimate

_INSTEAD = "run eagerly instead of compiled"
_WORTH_SAYING = 1 << 20  # bytes
_state = threading.local()
_estimates: list = []


def is_compiled() -> bool:
    """Does what runs now belong to a function that would be compiled?"""
    return getattr(_state, "depth", 0) > 0


@contextlib.contextmanager
def _region():
    _state.depth = getattr(_state, "depth", 0) + 1
    try:
        yield
    finally:
        _state.depth -= 1


def _is_own_use() -> bool:
    """Does PyTorch itself ask, as flex_attention does to look at its functions?"""
    return sys._getframe(2).f_code.co_filename.startswith(torch.__path__[0])


def _as_in_eager(backend) -> bool:
    """Does the backend run the program's operations as they are?"""
    return isinstance(backend, str) and backend in ("eager", "eager_noexcept", "eager_debug", "pre_dispatch_eager")


class _Compiled:
    """What torch.compile makes of a function."""

    def __init__(self, session, text: str):
        self._session = session
        self._text, self._line = text, user_line()
        self._estimated = self._told = False

    def __call__(self, function):
        @functools.wraps(function, updated=())
        def run(*args, **kwargs):
            if is_compiled():
                return function(*args, **kwargs)
            operations = self._session.mode.operations_on_gpu
            try:
                if self._estimated or not torch.is_grad_enabled():
                    with _region():
                        return function(*args, **kwargs)
                self._estimated = True
                return self._estimate_around(function, args, kwargs)
            finally:
                if not self._told and self._session.mode.operations_on_gpu > operations:
                    self._told = True
                    self._session.notes.add("instead", self._text, self._line, verdict=_INSTEAD)

        run._torchdynamo_orig_callable = function
        return run

    def _estimate_around(self, function, args, kwargs):
        """The first call: what eager keeps after it beside what a compiled one would keep."""
        session = self._session
        estimate = compiled_estimate.start(session, function, args, kwargs)
        before = self._allocated()
        with _region():
            result = function(*args, **kwargs)
        if estimate is not None:
            estimate.name, estimate.line = _name(function), user_line()
            estimate.eager_bytes = self._allocated() - before
            _estimates.append(estimate)
        return result

    def _allocated(self) -> int:
        """Without what libraries keep for themselves."""
        return self._session.device.stats(here()).allocated_bytes - self._session.memory.workspace_bytes


def tell_estimates(session) -> None:
    """At the end: they were made beside the program."""
    for estimate in _estimates:
        kept_bytes = estimate.result()
        if kept_bytes is not None and estimate.eager_bytes >= _WORTH_SAYING:
            session.notes.add(
                "mode",
                f"after its forward pass {estimate.name} keeps {gib(estimate.eager_bytes)} eagerly, which is planned; compiled it would keep about {gib(kept_bytes)}: "
                "an estimate, by PyTorch's partitioner, which chooses what is computed again in backward",
                line=estimate.line,
            )
    _estimates.clear()


def _name(function) -> str:
    owner = getattr(function, "__self__", None)
    return type(owner).__name__ if owner is not None else getattr(function, "__name__", "the compiled function")


def _module(model, compiled: _Compiled):
    from torch._dynamo.eval_frame import OptimizedModule

    class Planned(OptimizedModule):
        """As torch.compile wraps a module, with _orig_mod; nothing is compiled."""

        def _initialize(self):
            self.forward = self.dynamo_ctx(self._orig_mod.__call__)

        def __call__(self, *args, **kwargs):
            return torch.nn.Module.__call__(self, *args, **kwargs)

        def __reduce__(self):
            return _module, (self._orig_mod, compiled)

    Planned.__name__ = Planned.__qualname__ = "OptimizedModule"
    return Planned(model, compiled)


def _asked_by_library() -> bool:
    """Who calls PyTorch?"""
    frame = sys._getframe(1)
    while frame is not None and (
        is_own(frame.f_code.co_filename) or frame.f_code.co_filename.startswith(torch.__path__[0])
    ):
        frame = frame.f_back
    return frame is not None and is_library(frame.f_code.co_filename)


class _Scripted:
    """Functions and modules for which torch.jit.script was called. Libraries do so while they are imported: it is said of what ran on the GPU."""

    def __init__(self, session):
        self._session = session
        self._asked = WeakById()  # → where, and whether by a library
        self._hears_modules = False

    def take(self, obj, line: str, by_library: bool) -> None:
        if isinstance(obj, (torch.nn.Module, types.FunctionType)):
            self._asked[obj] = line, by_library

    def watched(self, obj):
        if isinstance(obj, torch.nn.Module):
            if not self._hears_modules:
                self._hears_modules = True
                torch.nn.modules.module.register_module_forward_pre_hook(lambda module, _inputs: self._runs(module))
            return obj
        return self._around(obj) if isinstance(obj, types.FunctionType) else obj

    def _around(self, function):
        mode = self._session.mode

        @functools.wraps(function)
        def faultline(*args, **kwargs):
            operations = mode.operations_on_gpu
            try:
                return function(*args, **kwargs)
            finally:
                if mode.operations_on_gpu > operations:
                    self._runs(function)

        return faultline

    def _runs(self, obj) -> None:
        if obj not in self._asked:
            return
        line, by_library = self._asked[obj]
        self._asked.pop(obj)
        if by_library:  # its own affair: what a library scripts are small functions, and the program never asked for it
            text = f"torch.jit.script, which a library asks for, was not applied to {_name(obj)}: it ran eagerly"
            self._session.notes.add("mode", text, line, group="scripted by a library")
        else:
            self._session.notes.add(
                "instead", "torch.jit.script was not applied: the plan shows the eager program", line, verdict=_INSTEAD
            )


def install(session) -> None:
    def planned(mode) -> _Compiled:
        text = "torch.compile was not applied: the plan shows the eager program, which usually needs more memory than the compiled one"
        if mode in ("reduce-overhead", "max-autotune") or isinstance(mode, dict) and mode.get("triton.cudagraphs"):
            text += "; its CUDA graphs, which keep what they take for their replays and copies of their inputs, were not planned"
        return _Compiled(session, text)

    def compile(model=None, *, backend="inductor", mode=None, disable=False, options=None, **more):
        if model is None:
            return lambda function: compile(
                function, backend=backend, mode=mode, disable=disable, options=options, **more
            )
        if disable or _as_in_eager(backend) or _is_own_use():
            return model
        compiled = planned(mode or options)
        return _module(model, compiled) if isinstance(model, torch.nn.Module) else compiled(model)

    def compile_module(module, *args, **kwargs):
        if kwargs.get("disable") or _as_in_eager(kwargs.get("backend")):
            return
        module._compiled_call_impl = planned(kwargs.get("mode") or kwargs.get("options"))(module._call_impl)

    torch.compile = compile
    torch.nn.Module.compile = compile_module
    torch.compiler.reset = lambda: None
    for name in (
        "_cuda_CUDAAllocator_AllocatorState",
        "_set_cached_tensors_enabled",
    ):  # torch._dynamo.reset() imports them where there is CUDA
        if not hasattr(torch._C, name):
            setattr(torch._C, name, lambda *_args: None)
    _pass_over_scripts(session)


def _pass_over_scripts(session) -> None:
    compiled = torch.jit.script
    scripted = _Scripted(session)

    def script(obj, *args, **kwargs):
        if _is_own_use():
            try:
                return compiled(obj, *args, **kwargs)
            except Exception:  # it stands on functions that are the dry run's own here
                return obj
        scripted.take(obj, user_line(), _asked_by_library())
        _give_ways_of_scripts(obj)
        return scripted.watched(obj)

    torch.jit.script = script
    torch.jit.script_if_tracing = lambda function: function
    for name in ("freeze", "optimize_for_inference", "run_frozen_optimizations"):
        if hasattr(torch.jit, name):
            setattr(torch.jit, name, _of_scripts_alone(getattr(torch.jit, name)))


def _of_scripts_alone(changes):
    """What changes a compiled module has nothing to change in one that runs eagerly."""

    @functools.wraps(changes)
    def faultline(module, *args, **kwargs):
        return changes(module, *args, **kwargs) if isinstance(module, torch.jit.ScriptModule) else module

    return faultline


def _save_script(module, f, **_kwargs) -> None:
    torch.jit.save(module, f)


def _give_ways_of_scripts(obj) -> None:
    """What programs call and read of a compiled module, and an eager one does not have."""
    if isinstance(obj, torch.nn.Module) and not isinstance(obj, torch.jit.ScriptModule):
        text = "# torch.jit.script is not applied in a dry run"
        ways = {"save": functools.partial(_save_script, obj), "code": text, "graph": text, "inlined_graph": text}
        vars(obj).update({name: way for name, way in ways.items() if not hasattr(obj, name)})
