"""What the program calls its tensors and models: the operation's own word for an operand, a module's attribute, a variable.

Looked up when an operation has failed and when a model first runs, never for each tensor.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import sys

import torch

from ...source.reader import program_frames
from ..tensors.memory import storage_id

Tensor = torch.Tensor


def argument_names(func, args, kwargs) -> list[str]:
    """As the operation calls them, in the order in which flatten (outcome.py) meets the tensors: self, mat1, weight; tensors[2] of a list."""
    if hasattr(func, "_schema"):
        words = [argument.name for argument in func._schema.arguments]
    else:
        try:
            words = list(inspect.signature(func).parameters)
        except (TypeError, ValueError):
            words = []
    given = [(words[at] if at < len(words) else "", value) for at, value in enumerate(args)] + list(kwargs.items())
    names: list[str] = []
    for name, value in given:
        if isinstance(value, Tensor):
            names.append(name)
        elif isinstance(value, (list, tuple)):
            names += [name and f"{name}[{at}]" for at, one in enumerate(value) if isinstance(one, Tensor)]
    return names


def _storage(value) -> int:
    """0: it has none that could be compared."""
    if not isinstance(value, Tensor):
        return 0
    try:
        return storage_id(value)
    except (RuntimeError, NotImplementedError):  # sparse, nested, wrapped by vmap
        return 0


def _of_modules(paths, wanted: set[int]) -> dict[int, tuple[str, str]]:
    """Parameters, buffers and plain attributes of the models that have run."""
    found: dict[int, tuple[str, str]] = {}
    on_gpu: dict[str, bool] = {}  # by model: has it been moved?
    attributes: list[tuple[int, str]] = []
    for module, path in paths.items():
        model = path.partition(".")[0]
        for kind, members in (("parameter", module._parameters), ("buffer", module._buffers)):
            for name, value in members.items():
                if value is not None:
                    on_gpu[model] = on_gpu.get(model, False) or value.is_cuda
                if _storage(value) in wanted:
                    found.setdefault(_storage(value), (kind, f"{path}.{name}"))
        attributes += [
            (_storage(value), f"{path}.{name}") for name, value in vars(module).items() if _storage(value) in wanted
        ]
    for storage, path in attributes:
        # Where the model itself was never moved, what it keeps is not what was forgotten.
        found.setdefault(storage, ("attribute" if on_gpu.get(path.partition(".")[0]) else "variable", path))
    return found


def _variables(frame) -> list:
    copy = frame.f_locals
    variables = list(copy.items())
    # Until Python 3.13 a function's frame keeps this copy, and with it what the copy refers to; unless the program has it too (locals()), it goes.
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(copy) is dict and sys.getrefcount(copy) <= 3:
        copy.clear()
    return variables


def _of_frame(frame, tensors: dict[int, Tensor]) -> dict[int, tuple[str, str]]:
    """Variables of the innermost line of the program, and attributes of its object; the tensor itself before one that shares its memory."""
    found: dict[int, tuple[str, str]] = {}
    places = _variables(frame)
    owner = dict(places).get("self")
    if owner is not None and not isinstance(owner, torch.nn.Module) and hasattr(owner, "__dict__"):
        places += [(f"self.{name}", value) for name, value in vars(owner).items()]
    places += list(frame.f_globals.items())
    for itself in (True, False):
        for name, value in places:
            storage = _storage(value)
            if storage in tensors and (value is tensors[storage]) >= itself and not name.startswith("_"):
                found.setdefault(storage, ("variable", name))
    return found


def names_of(operands, paths) -> list[tuple[str, str]]:
    """(parameter, buffer, attribute or variable; its name) of each; a pair of nothing where the program has no name for it."""
    tensors = {_storage(operand): operand for operand in operands}
    tensors.pop(0, None)
    found = _of_modules(paths, set(tensors))
    frame = next(program_frames(), None)
    if frame is not None:
        for storage, name in _of_frame(frame, tensors).items():
            found.setdefault(storage, name)
    return [found.get(_storage(operand), ("", "")) for operand in operands]


def _called_as(frame) -> str:
    """What the call that the frame is in calls: netG of self.netG(z). The source tells it (from Python 3.11 on), so that no variable is touched."""
    linecache.getline(frame.f_code.co_filename, 1, frame.f_globals)  # knows it from then on
    return _called_in(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=4096)
def _called_in(code, at: int) -> str:
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return ""
    first, last, begin, end = next(itertools.islice(positions(), at // 2, None), (None,) * 4)
    if first is None or first != last or begin is None or end is None:
        return ""
    line = linecache.getline(code.co_filename, first).encode()[begin:end]
    try:
        call = ast.parse(line.decode(errors="replace").strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    called = getattr(call, "func", None)
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def called_as() -> str:
    """What the program calls in the line of it that runs now; empty: not known."""
    frame = next(program_frames(), None)
    return _called_as(frame) if frame is not None else ""


def model_name(model, taken: dict) -> str:
    """The class, where that says which model it is; else the program's variable or attribute, else the class and a number. taken: names to what refers to their models."""
    kind = type(model).__name__
    frames = list(program_frames())
    variable, has_twin = "", False
    for frame in reversed(frames):
        if frame.f_code.co_name == "<module>":
            for name, value in list(frame.f_globals.items()):
                has_twin = has_twin or (type(value) is type(model) and value is not model)
                if value is model and not variable and not name.startswith("_"):
                    variable = name
    variable = variable or (_called_as(frames[0]) if frames else "")
    is_plain = type(model).__module__.startswith("torch.nn.")
    names = [name for name in ((variable, kind) if is_plain or has_twin else (kind, variable)) if name]
    numbered = (f"{names[0]}#{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain(names, numbered) if name not in taken or taken[name]() is None)
