"""CUDA extensions that a program compiles on its way (torch.utils.cpp_extension.load and load_inline, the builders of DeepSpeed).

Nothing is compiled: it would take minutes, wants a toolkit, and its kernels could not run. A stand-in takes the module's place. What its functions give is read from the sources: one that
returns nothing writes into what it is given; of any other only --op-memory can tell. Extensions without CUDA are compiled and run, and the time is not the program's.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import time
import types

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ...._import_watch import ImportWatch
from ...session.unplannable import Unplannable, meant
from ..dispatch import custom_operations

_BOUND = re.compile(r"\bm\.def\(\s*\"(\w+)\"\s*,\s*(?:torch::wrap_pybind_function\w*\(\s*)?&?\s*(?:\w+::)*(\w+)")
_LIBRARY = re.compile(r"\bTORCH_LIBRARY(?:_FRAGMENT)?\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{(.*?)\n\}", re.DOTALL)
_SCHEMA = re.compile(r"\bdef\(\s*((?:\"[^\"]*\"\s*)+)")


def _text_of(sources) -> str:
    found = []
    for path in sources:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read())
        except OSError:
            pass  # the compiler would complain; a name that is missing is said when it is used
    return "\n".join(found)


class _Operation:
    """What custom_operations asks of an operator of PyTorch."""

    def __init__(self, name: str, results: int):
        self._schema = types.SimpleNamespace(name=name, returns=[types.SimpleNamespace(type="Tensor")] * results)

    def name(self) -> str:
        return self._schema.name


class _Function:
    def __init__(self, session, extension: str, name: str, is_void: bool):
        self._session, self.__name__, self._is_void = session, name, is_void
        self._full = f"{extension}::{name}"

    def __call__(self, *args, **kwargs):
        operands = _all_tensors((args, kwargs))
        told = self._session.mode.told_operations.get(self._full)
        if told is not None:
            return self._as_told(told, operands)
        if not self._is_void:
            raise Unplannable(
                f"{self._full} is CUDA code that the program compiles, and what it gives is not known to a dry run (--op-memory '{self._full}=SIZE,like=0' tells what it takes and gives)"
            )
        for tensor in operands:
            if tensor.is_cuda:
                self._session.values.assume(tensor)
        return None

    def _as_told(self, told: dict, operands):
        results = told.get("results") or ([] if self._is_void else [{"like": 0}])
        with _disable_current_modes():
            return custom_operations.make_told(
                self._session.mode, _Operation(self._full, len(results)), told, results, operands
            )


def _all_tensors(value) -> list:
    """Also those in lists of lists, as multi_tensor_apply gives them."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in _all_tensors(part)]
    return []


def _stand_in(session, name: str, sources):
    text = _text_of(sources)
    bound = dict(_BOUND.findall(text))
    session.notes.add(
        "instead",
        f"the CUDA extension {name}, which the program compiles, was not: in its place functions that return nothing do nothing, and what others give is not known",
        verdict=f"with a stand-in for {name}",
    )
    _define_operators(text)
    module = types.ModuleType(name)

    def missing(attribute):
        if attribute.startswith("__") or bound and f'"{attribute}"' not in text:
            raise meant(AttributeError(f"module '{name}' has no attribute '{attribute}'"))
        function = bound.get(attribute, attribute)
        is_void = re.search(rf"\bvoid\s+(?:\w+::)*{re.escape(function)}\s*\(", text) is not None
        return _Function(session, name, attribute, is_void)

    module.__getattr__ = missing
    return module


def _define_operators(text: str) -> None:
    """TORCH_LIBRARY: the schemas stand in the source."""
    for namespace, variable, body in _LIBRARY.findall(text):
        for parts in _SCHEMA.findall(body):
            schema = "".join(re.findall(r'"([^"]*)"', parts))
            if "->" not in schema:
                continue
            try:
                _kept.append(torch.library.Library(namespace, "FRAGMENT"))
                _kept[-1].define(schema.removeprefix(f"{namespace}::"))
            except RuntimeError:
                pass  # it is there already


_kept: list = []


def _in_place_of_compiling(session, compile_now):
    @functools.wraps(compile_now)
    def faultline(name, sources, *args, **kwargs):
        cuda = kwargs.get("with_cuda")
        if cuda is None:
            at = list(compile_now.__code__.co_varnames).index("with_cuda") - 2
            cuda = args[at] if at < len(args) else None
        if cuda is None:
            cuda = any(os.path.splitext(source)[1] in (".cu", ".cuh") for source in sources)
        if not cuda:
            began = time.monotonic()
            try:
                return compile_now(name, sources, *args, **kwargs)
            finally:
                if session.mode.deadline is not None:
                    session.mode.deadline += time.monotonic() - began
        return _stand_in(session, name, sources)

    return faultline


def install(session) -> None:
    def torchs(_name, module):
        if hasattr(module, "_jit_compile"):
            module._jit_compile = _in_place_of_compiling(session, module._jit_compile)

    def deepspeeds(_name, module):
        builder = getattr(module, "CUDAOpBuilder", None)
        if builder is not None:
            builder.jit_load = lambda this, verbose=True: _stand_in(
                session, this.name, [os.path.abspath(this.deepspeed_src_path(path)) for path in this.sources()]
            )

    for name, change in (("torch.utils.cpp_extension", torchs), ("deepspeed.ops.op_builder.builder", deepspeeds)):
        if name in sys.modules:
            change(name, sys.modules[name])
        else:
            ImportWatch((name,), change)
