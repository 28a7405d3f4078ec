"""Who keeps GPU memory alive in a notebook: variables, and what a notebook keeps by itself (Out[…], _, the last error with the variables of its functions).

Only looked at: nothing is called on the program's objects but what PyTorch, JAX and TensorFlow say of their own arrays, and no reference is left behind.
"""

from __future__ import annotations

import ast
import gc
import inspect
import sys
import time
import types
from collections import deque

from ..report import Section, bytes_in_words

_MOST_OBJECTS = 200_000
_MOST_SECONDS = 1.0
_MOST_VARIABLES = 6
_LEAST = 1 << 10
_PLAIN = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.CodeType, range)
_OF_IPYTHON = {"In", "Out", "exit", "quit", "get_ipython", "open"}

RELEASE = "%faultline release drops what the notebook itself keeps (Out, _, the last error) and gives PyTorch's cache back to the GPU."


def is_on_gpu(tensor) -> bool:
    """Of PyTorch's tensors."""
    return bool(tensor.is_cuda)


def _array(thing):
    """(identity, bytes, address) of an array on the GPU, else None."""
    kind = type(thing)
    module = kind.__module__ or ""
    try:
        torch = sys.modules.get("torch")
        if torch is not None and issubclass(kind, getattr(torch, "Tensor", ())):
            if not is_on_gpu(thing):
                return None
            storage = thing.untyped_storage()
            return ("torch", storage._cdata), storage.nbytes(), storage.data_ptr()
        if kind.__name__ == "ArrayImpl" and module.startswith(("jax", "jaxlib")) and not thing.is_deleted():
            if any(device.platform != "cpu" for device in thing.devices()):
                return ("jax", id(thing)), int(thing.nbytes), 0
        elif kind.__name__ == "EagerTensor" and module.startswith("tensorflow") and "GPU" in thing.device:
            return ("tensorflow", id(thing)), int(thing.shape.num_elements() * thing.dtype.size), 0
    except Exception:
        pass  # an array that does not say what it is
    return None


def _inside(thing):
    """What an object holds, as far as that can be seen without running anything of the program's."""
    kind = type(thing)
    if issubclass(kind, dict):
        yield from dict.values(thing)
    elif issubclass(kind, (list, tuple, set, frozenset, deque)):
        base = next(one for one in (list, tuple, set, frozenset, deque) if issubclass(kind, one))
        yield from base.__iter__(thing)
    elif issubclass(kind, BaseException):
        for frame in _frames(thing):
            yield from _locals(frame).values()
        yield from (one for one in (thing.__cause__, thing.__context__) if one is not None)
        yield thing.args
    elif issubclass(kind, types.FunctionType):
        for cell in thing.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                pass
    elif issubclass(kind, types.MethodType):
        yield thing.__self__
    elif issubclass(kind, types.GeneratorType) and thing.gi_frame is not None:
        yield from _locals(thing.gi_frame).values()
    try:
        yield from object.__getattribute__(thing, "__dict__").values()
    except (AttributeError, TypeError, RuntimeError):
        pass


def _gradient(thing, identity):
    try:
        return thing.grad if identity[0] == "torch" and thing.is_leaf else None
    except Exception:
        return None


def _locals(frame) -> dict:
    """The variables of a function. Before Python 3.13 a frame keeps the dict in which it shows them, and with it what they were: that is emptied again."""
    shown = frame.f_locals
    taken = dict(shown)
    if sys.version_info < (3, 13) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        shown.clear()
    return taken


def _frames(problem):
    """The frames that an exception keeps alive; not those of whole cells, whose variables are the notebook's, and of IPython, which lead to all there is."""
    entry = problem.__traceback__
    while entry is not None:
        frame = entry.tb_frame
        is_cell = not frame.f_code.co_flags & inspect.CO_NEWLOCALS
        if not is_cell and not any(part in frame.f_code.co_filename for part in ("/IPython/", "/ipykernel/")):
            yield frame
        entry = entry.tb_next


class Kept:
    """One holder: what it is called, and the arrays that nobody before it in the list holds too."""

    def __init__(self, kind, name):
        self.kind, self.name = kind, name  # kind: variable, exception, out, error, elsewhere
        self.arrays = {}  # identity → (bytes, address)
        self.locals = []  # of an error: the variables of functions that hold them

    def bytes(self, wanted=None):
        return sum(size for key, (size, at) in self.arrays.items() if wanted is None or wanted(key, at))


class Search:
    """Of one moment."""

    def __init__(self, shell):
        self._shell = shell
        self._seen, self._until = set(), time.monotonic() + _MOST_SECONDS
        self.is_whole = True
        self.holders = []
        namespace = getattr(shell, "user_ns", {})
        hidden = getattr(shell, "user_ns_hidden", {})
        errors = []
        for name, value in list(namespace.items()):
            if name.startswith("_") or name in _OF_IPYTHON or hidden.get(name, self) is value:
                continue
            if isinstance(value, BaseException):
                errors.append((name, value))
            else:
                self._look("variable", name, [value])
        for name, value in errors:
            self._look_at_error("exception", name, value)
        self._look_at_outputs(namespace)
        self._look_at_last_error(shell)
        errors = value = None
        self.arrays = {key: told for holder in self.holders for key, told in holder.arrays.items()}

    def _look(self, kind, name, things):
        holder = Kept(kind, name)
        left = deque(things)
        while left:
            thing = left.popleft()
            if isinstance(thing, _PLAIN) or id(thing) in self._seen:
                continue
            if len(self._seen) > _MOST_OBJECTS or time.monotonic() > self._until:
                self.is_whole = False
                break
            self._seen.add(id(thing))
            found = _array(thing)
            if found is not None:
                holder.arrays.setdefault(found[0], found[1:])
                left.append(_gradient(thing, found[0]))
            left.extend(_inside(thing))
        for known in self.holders:
            for key in known.arrays:
                holder.arrays.pop(key, None)
        if holder.arrays:
            self.holders.append(holder)
        return holder

    def _look_at_error(self, kind, name, problem):
        if id(problem) in self._seen:
            return
        before = len(self.holders)
        seen = set()
        while problem is not None and id(problem) not in seen:
            seen.add(id(problem))
            self._seen.add(id(problem))  # a variable of its own functions may lead to it again
            for frame in _frames(problem):
                for local, value in _locals(frame).items():
                    holder = self._look(kind, name, [value])
                    if holder.arrays:
                        code = frame.f_code
                        holder.locals.append((local, code.co_name, code.co_filename, frame.f_lineno))
            problem = problem.__cause__ or problem.__context__
        self._join(before)

    def _join(self, before):
        """The parts of one holder become one."""
        first, *more = self.holders[before:] or [None]
        for part in more:
            first.arrays.update(part.arrays)
            first.locals += part.locals
        del self.holders[before + 1 :]

    def _look_at_outputs(self, namespace):
        outputs = namespace.get("_oh")
        hook = getattr(self._shell, "displayhook", None)
        recent = {mark: namespace.get(mark) for mark in ("_", "__", "___")}
        for number, value in sorted(outputs.items()) if isinstance(outputs, dict) else ():
            marks = [f"Out[{number}]", *(mark for mark, other in recent.items() if other is value)]
            self._look("out", " and ".join(marks), [value])
        for mark in ("_", "__", "___"):
            self._look("out", mark, [recent[mark], getattr(hook, mark, None)])

    def _look_at_last_error(self, shell):
        before = len(self.holders)
        for name in ("last_exc", "last_value"):
            problem = getattr(sys, name, None)
            if isinstance(problem, BaseException):
                self._look_at_error("error", "the last error", problem)
        for entry in (getattr(sys, "last_traceback", None), getattr(getattr(shell, "InteractiveTB", None), "tb", None)):
            if isinstance(entry, types.TracebackType):
                self._look_at_error("error", "the last error", BaseException().with_traceback(entry))
        self._join(before)


def _elsewhere(known):
    """Arrays of PyTorch's that no name leads to: (bytes, where they lie)."""
    torch = sys.modules.get("torch")
    if torch is None:
        return []
    found, seen = {}, set(known)
    everything = gc.get_objects()
    for thing in everything:
        try:
            told = _array(thing) if issubclass(type(thing), torch.Tensor) else None
        except Exception:
            continue
        if told is None or told[0] in seen or told[1] < _LEAST:
            continue
        seen.add(told[0])
        if len(seen) - len(known) > 2000:
            break
        where = "held by something without a name in Python"
        for referrer in gc.get_referrers(thing)[:8] if len(found) < 8 else ():
            if referrer is everything or isinstance(referrer, types.FrameType) and referrer is sys._getframe():
                continue
            kind = type(referrer)
            if isinstance(referrer, types.FrameType):
                where = f"a variable of {referrer.f_code.co_name}(), which is running or suspended"
            else:
                where = f"in a {kind.__name__}" + (f" of {len(referrer)}" if isinstance(referrer, (list, dict)) else "")
            break
        referrer = None
        found[where] = found.get(where, 0) + told[1]
    thing = everything = told = None
    return sorted(((size, where) for where, size in found.items()), reverse=True)


def made_in(shell, name) -> int | None:
    """The last cell that gives this variable a value."""
    inputs = getattr(getattr(shell, "history_manager", None), "input_hist_parsed", [])
    for number in range(len(inputs) - 1, max(0, len(inputs) - 300), -1):
        if name not in inputs[number]:
            continue
        try:
            tree = ast.parse(inputs[number])
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            stores = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name
            if stores or isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return number
    return None


def described(holder, shell, cells) -> str:
    """What a holder is, behind its name."""
    if holder.kind == "variable":
        number = made_in(shell, holder.name)
        return f"a variable of cell [{number}]" if number is not None else "a variable"
    if holder.kind == "out":
        return "an output that IPython keeps; no variable holds it"
    names = []
    for local, function, file, line in holder.locals[:3]:
        place = cells.name_of(file)
        place = f"{place}, line {line}" if place.startswith("cell [") else f"{place.rsplit('/', 1)[-1]}:{line}"
        names.append(f"{local} in {function}(), {place}")
    more = f" and {len(holder.locals) - 3} more" if len(holder.locals) > 3 else ""
    whose = "an exception in a variable" if holder.kind == "exception" else "sys.last_value with its traceback"
    return f"{whose}: it keeps the variables of its functions alive: {'; '.join(names)}{more}"


def fixes_for(holders) -> list:
    kinds = {holder.kind for holder in holders}
    fixes = []
    if "out" in kinds:
        fixes.append("End a line that shows a tensor with ; so that IPython does not keep it, or show x.shape instead.")
    if kinds & {"out", "error"}:
        fixes.append(RELEASE)
    for holder in holders:
        if holder.kind == "exception":
            fixes.append(f"del {holder.name}, or keep str({holder.name}) instead of the exception.")
    return fixes


def section_of(shell, cells, title="What this notebook holds on the GPU"):
    """None where nothing is held."""
    search = Search(shell)
    traps = sorted((h for h in search.holders if h.kind != "variable"), key=lambda h: -h.bytes())
    traps = [holder for holder in traps if holder.bytes() >= _LEAST]
    variables = sorted((h for h in search.holders if h.kind == "variable"), key=lambda h: -h.bytes())
    rows = [(holder.bytes(), holder.name, described(holder, shell, cells)) for holder in traps]
    rows += [
        (h.bytes(), h.name, described(h, shell, cells)) for h in variables[:_MOST_VARIABLES] if h.bytes() >= _LEAST
    ]
    if len(variables) > _MOST_VARIABLES:
        rest = variables[_MOST_VARIABLES:]
        rows.append((sum(h.bytes() for h in rest), f"{len(rest)} more", "variables"))
    rows += [(size, "no name", where) for size, where in _elsewhere(search.arrays)[:3]]
    if not rows:
        return None
    sentences = []
    if traps:
        kept = sum(holder.bytes() for holder in traps)
        sentences.append(
            f"{bytes_in_words(kept)} are kept by the notebook itself and by no variable: they stay when their cells are run again."
        )
    if not search.is_whole:
        sentences.append("There is more in this notebook than was looked at: some holders may be missing.")
    return Section(title, tuple(sentences), tuple(rows), tuple(fixes_for(traps)))


def release(shell) -> None:
    """Drops what the notebook keeps by itself. Variables stay."""
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    for part in ("InteractiveTB", "SyntaxTB"):
        if getattr(getattr(shell, part, None), "tb", None) is not None:
            getattr(shell, part).tb = None
    namespace, hidden = shell.user_ns, getattr(shell, "user_ns_hidden", {})
    outputs = namespace.get("_oh")
    if isinstance(outputs, dict):
        for number in list(outputs):
            namespace.pop(f"_{number}", None)
            hidden.pop(f"_{number}", None)
        outputs.clear()
    hook = getattr(shell, "displayhook", None)
    for mark in ("_", "__", "___"):
        if hasattr(hook, mark):
            if mark in namespace and getattr(hook, mark) is namespace[mark]:
                shell.push({mark: ""}, interactive=False)
            setattr(hook, mark, "")
    last = getattr(shell, "last_execution_result", None)
    if last is not None:
        last.result = last.error_in_exec = last.error_before_exec = None
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
