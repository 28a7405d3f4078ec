"""jax.checkpoint for layers outside of scans: functions of the program that one line calls again and again while a function is differentiated.

The gradient keeps what each of these calls computed. Under jax.checkpoint it keeps what the call was given, and computes the rest again. A trial puts jax.checkpoint around the function in the
modules and classes that have it; arguments that are no arrays stay as they are.
"""

from __future__ import annotations

import functools
import linecache
import sys
import types
from collections import Counter

from ...._file_owner import is_library, is_own
from ...source.edits import Edit

_LEAST_CALLS = 3  # of one line, in one pass
_REMAT = "ad_checkpoint.py"  # who is called through it is computed again already
_MOST_WATCHED = 4  # traces of one function that is differentiated


class Recomputation:
    def __init__(self, wanted: str):
        self._wanted = wanted  # "block@train.py:12"
        self._calls: Counter = Counter()  # by (code, the line that called it)
        self._callers: dict[types.CodeType, set] = {}
        self._has_static: dict[types.CodeType, set[int]] = {}
        self._own: dict[str, bool] = {}
        self._wrapped: dict[types.FunctionType, object] = {}
        self.applied = ""

    # --- while a function is differentiated

    def watched(self, function):
        """A function that is about to be differentiated."""
        left = _MOST_WATCHED

        @functools.wraps(function)
        def faultline(*arguments, **named):
            nonlocal left
            if self._wanted and not self.applied:
                self._apply()
            if left == 0 or sys.getprofile() is not None:
                return function(*arguments, **named)
            left -= 1
            before = self._calls
            self._calls = Counter()
            sys.setprofile(self._called)
            try:
                return function(*arguments, **named)
            finally:
                sys.setprofile(None)
                self._calls = Counter({key: max(self._calls[key], before[key]) for key in {*self._calls, *before}})

        return faultline

    def _called(self, frame, event, _):
        if event != "call":
            return
        code = frame.f_code
        if code.co_name.startswith("<") or not self._is_of_program(code.co_filename):
            return
        caller, through_remat = frame.f_back, False
        while caller is not None and not self._is_of_program(caller.f_code.co_filename):
            through_remat |= caller.f_code.co_filename.endswith(_REMAT)
            caller = caller.f_back
        if caller is None or through_remat:
            return
        self._calls[code, caller.f_code, caller.f_lineno] += 1
        chain = self._callers.setdefault(code, set())
        while caller is not None:
            chain.add(caller.f_code)
            caller = caller.f_back
        names = code.co_varnames[: code.co_argcount]
        static = {at for at, name in enumerate(names) if not _has_arrays(frame.f_locals.get(name))}
        self._has_static[code] = self._has_static.get(code, static) & static

    def _is_of_program(self, file: str) -> bool:
        known = self._own.get(file)
        if known is None:
            known = self._own[file] = not (is_own(file) or is_library(file) or file.startswith("<"))
        return known

    # --- what is offered

    def found(self) -> list[tuple[types.CodeType, int]]:
        """Functions and how often one line called them, the outermost of those that are called within each other."""
        repeated: dict[types.CodeType, int] = {}
        for (code, _, _), calls in self._calls.items():
            if calls >= _LEAST_CALLS and _places_of(code):
                repeated[code] = max(calls, repeated.get(code, 0))
        return [(c, n) for c, n in repeated.items() if not any(c is not o and o in self._callers[c] for o in repeated)]

    def edits(self, code: types.CodeType) -> list[Edit]:
        """jax.checkpoint above the function, where its lines can be read."""
        line = code.co_firstlineno
        text = linecache.getline(code.co_filename, line)
        module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == code.co_filename), None)
        if not text.strip().startswith("def ") or getattr(module, "jax", None) is None:
            return []
        indent = text[: len(text) - len(text.lstrip())]
        static = sorted(self._has_static.get(code, ()))
        if static and getattr(module, "functools", None) is not functools:
            return []
        word = f"@functools.partial(jax.checkpoint, static_argnums={tuple(static)})" if static else "@jax.checkpoint"
        return [Edit(code.co_filename, line, [], [f"{indent}{word}"])]

    # --- the trial

    def _apply(self) -> None:
        import jax

        for code in {code for module in _own_modules() for code in _codes_in(module)}:
            if name_of(code) != self._wanted:
                continue
            for holder, name, function in _places_of(code):
                if function in self._wrapped.values():
                    continue
                wrapped = self._wrapped.get(function)
                if wrapped is None:
                    wrapped = self._wrapped[function] = _checkpointed(jax, function)
                setattr(holder, name, wrapped)
                self.applied = f"{code.co_name} ({_place(code)})"


def name_of(code: types.CodeType) -> str:
    return f"{code.co_name}@{_place(code)}"


def _place(code: types.CodeType) -> str:
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"


def _has_arrays(value) -> bool:
    import jax

    return any(hasattr(leaf, "dtype") and hasattr(leaf, "shape") for leaf in jax.tree.leaves(value))


def _own_modules() -> list:
    def is_of_program(module) -> bool:
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and not (is_own(file) or is_library(file))

    return [
        module
        for module in list(sys.modules.values())
        if isinstance(module, types.ModuleType) and is_of_program(module)
    ]


def _functions_in(module):
    """Of a module and of its classes: who has it, by which name, the function."""
    for name, value in list(vars(module).items()):
        if isinstance(value, types.FunctionType):
            yield module, name, value
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for inner, method in list(vars(value).items()):
                if isinstance(method, types.FunctionType):
                    yield value, inner, method


def _codes_in(module):
    return (function.__code__ for _, _, function in _functions_in(module))


def _places_of(code: types.CodeType) -> list:
    return [each for module in _own_modules() for each in _functions_in(module) if each[2].__code__ is code]


def _checkpointed(jax, function):
    """What is no array stays what it is."""

    @functools.wraps(function)
    def faultline(*arguments, **named):
        leaves, shape = jax.tree.flatten((arguments, named))
        places = [at for at, leaf in enumerate(leaves) if hasattr(leaf, "dtype") and hasattr(leaf, "shape")]

        def with_arrays(*arrays):
            whole = list(leaves)
            for at, array in zip(places, arrays):
                whole[at] = array
            own, own_named = jax.tree.unflatten(shape, whole)
            return function(*own, **own_named)

        return jax.checkpoint(with_arrays)(*(leaves[at] for at in places))

    return faultline
