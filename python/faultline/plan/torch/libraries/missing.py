"""Modules that are not installed here, or cannot be loaded without CUDA, and that the program imports all the same.

A stand-in is found only where everything else failed, and where the program cannot do without it: an import that is ready for the module to be missing (`try: import …
except ImportError`) stays as it is, and whoever only asks whether it is there is told that it is not.
"""

from __future__ import annotations

import ast
import functools
import linecache
import os
import sys
from importlib.machinery import ModuleSpec

import torch

from ...._file_owner import is_own
from ...session.unplannable import Unplannable
from . import missing_libraries

_READY = {"ImportError", "ModuleNotFoundError"}
_READY_FOR_ALL = _READY | {"Exception", "BaseException", ""}
_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_NATIVE_PARTS = {
    "flash_attn_2_cuda": "flash_attn"
}  # what such a module would do is asked of the shape rules of the library's operations


def _caught(handler: ast.ExceptHandler) -> set:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {"" if k is None else k.attr if isinstance(k, ast.Attribute) else getattr(k, "id", "?") for k in kinds}


@functools.lru_cache(maxsize=512)
def _ready_lines(path: str) -> tuple[tuple[int, int], ...]:
    """Stretches of lines, first and last, that are tried and whose failure to import is caught."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ()
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Try) or not node.handlers:
            continue
        caught = set().union(*map(_caught, node.handlers))
        only_imports = all(isinstance(s, (ast.Import, ast.ImportFrom, ast.Assign)) for s in node.body)
        if caught & _READY or only_imports and caught & _READY_FOR_ALL:
            found.append((node.body[0].lineno, max(s.end_lineno or s.lineno for s in node.body)))
    return tuple(found)


def _may_be_missing() -> bool:
    """Is whoever imports it ready for that, or PyTorch itself, which looks for what it can use?"""
    frame, seen = sys._getframe(2), False
    while frame is not None:
        path = frame.f_code.co_filename
        if path.endswith(("importlib/util.py", "importlib.util>", "pkgutil.py")):
            return True
        if not path.startswith("<frozen importlib") and not is_own(path):
            if not seen and path.startswith(_TORCH):
                return True
            seen = True
            if any(first <= frame.f_lineno <= last for first, last in _ready_lines(path)):
                return True
        frame = frame.f_back
    return False


class _Loader:
    def __init__(self, build):
        self._build = build

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self._build(module)


def _spec(name: str, build) -> ModuleSpec:
    spec = ModuleSpec(name, _Loader(build), is_package=True)
    spec.submodule_search_locations = []
    return spec


class _LastFinder:
    """For what nobody else has found."""

    def __init__(self, session):
        self._session = session

    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        library = missing_libraries.LIBRARIES.get(root)
        if library is None or not library.has(name):
            return None
        if name != root and not getattr(sys.modules.get(root), "__faultline_stand_in__", False):
            return None  # a part of the real library that is not there
        if name == root and _may_be_missing():
            return None
        return _spec(name, functools.partial(library.build, self._session))


class _NativeFinder:
    """For native parts, which would fail to load, or to run."""

    def find_spec(self, name, path=None, target=None):
        library = _NATIVE_PARTS.get(name)
        if library is None:
            return None

        def build(module):
            def missing(attribute):
                def call(*_args, **_kwargs):
                    raise Unplannable(f"{library}'s {attribute} is native code that a dry run cannot run")

                return call

            module.__getattr__ = missing

        return _spec(name, build)


def install(session) -> None:
    sys.meta_path.insert(0, _NativeFinder())
    sys.meta_path.append(_LastFinder(session))
