"""torch._dynamo, which PyTorch imports with the first optimizer and which takes longer than a plan of a small program: a stand-in answers what is asked of it in passing, and is replaced by
the module itself as soon as anything else of it is wanted."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
import types


def _nothing(*_args, **_kwargs) -> None:
    return None


def _as_it_is(function=None, *_args, **_kwargs):
    return _as_it_is if function is None else function


# What is asked in passing, and the answer where nothing is compiled.
_IN_PASSING = {"torch._dynamo": {"graph_break": _nothing, "disable": _as_it_is}}


class _Awaited(types.ModuleType):
    def __getattr__(self, name: str):
        return getattr(_imported(self.__name__), name)


def _is_importing() -> bool:
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _imported(name: str) -> types.ModuleType:
    """The module itself. A thread imports it: torch._dynamo's modules keep the frames of whoever imports them in a cycle, and with them the program's tensors."""
    if isinstance(sys.modules.get(name), _Awaited):
        parent, _, child = name.rpartition(".")
        del sys.modules[name]
        vars(sys.modules[parent]).pop(child, None)
        if not _is_importing():  # else that thread may wait for what this one imports
            thread = threading.Thread(target=importlib.import_module, args=(name,), daemon=True)
            thread.start()
            thread.join(60)
    return importlib.import_module(name)


def install() -> None:
    for name, answers in _IN_PASSING.items():
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue
        module = _Awaited(name)
        module.__spec__, module.__file__ = spec, spec.origin
        vars(module).update(answers)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        setattr(sys.modules[parent], child, module)
