"""Who holds the tensors that pile up: a dry run runs in the program's own Python, so what refers to a tensor can be looked at.

It is looked at after 8, 16, 32, … steps or calls of a model, and at the end: what a function holds is gone when the function is. Told for each
line that has many tensors, and more than after the first few rounds: the container with its name and its limit, or that no object refers to them, in which case an autograd graph does.
"""

from __future__ import annotations

import functools
import gc
import json
import sys
import time
import types
from collections import OrderedDict, deque

import torch

from ...._file_owner import is_library, is_own
from ...source.reader import program_frames
from ..tensors.memory import storage_id
from .program_names import _variables

_LEAST_COUNT, _LEAST_BYTES = 5, 1 << 19
_MOST_LINES, _MOST_FOUND, _SAMPLES, _LEVELS = 10, 40, 3, 5
_FEW_ROUNDS = 4
_FEWER = 4  # times fewer than before are not what grew
_MOST_NODES = 500  # of a graph that is looked at
_MOST_SECONDS = 2.0  # for all looks of a run
_CONTAINERS = (list, deque, dict, OrderedDict, set, tuple)
_NOT_HOLDERS = (types.FrameType, types.FunctionType, types.ModuleType, types.TracebackType, type, types.CellType)
_OPTIMIZER = "an optimizer"
_Cache = type(functools.lru_cache(lambda: None))


class Holders:
    def __init__(self, session):
        self._memory, self._progress = session.memory, session.progress
        self._next = 8
        self._earlier: dict[int, int] = {}  # how many tensors each stack's line had after a few rounds
        self._calls = 0
        self._seconds = 0.0
        self._found: dict[int, dict] = {}  # by the stack that made them
        self._lengths: dict[int, tuple[int, int]] = {}  # of a list: how long, with how many of the line's tensors

    def came_round(self) -> None:
        """A step, or a model's call."""
        self._calls += 1
        if self._calls == _FEW_ROUNDS:
            self._earlier = {stack: len(records) for stack, records in self._by_stack().items()}
        if self._calls >= self._next:
            self._next = 2 * self._calls
            self.look()

    def look(self, last: bool = False) -> None:
        """last: whatever the others took; what is counted then is what the report is about."""
        began = time.process_time()  # a busy machine does not count
        if self._seconds > _MOST_SECONDS and not last:
            return
        try:
            self._look()
        except Exception:  # of ours: the plan is whole without it
            pass
        self._seconds += time.process_time() - began

    def write(self, device) -> None:
        for number, found in enumerate(self._found.values()):
            device.property(f"dry-run.held.{number:02}", json.dumps(found))

    # --- which tensors

    def _by_stack(self) -> dict[int, list]:
        stacks: dict[int, list] = {}
        for record in list(self._memory.records.values()):
            if record.allocation:
                stacks.setdefault(record.stack, []).append(record)
        return stacks

    def _look(self) -> None:
        many = [
            (sum(record.size_bytes for record in records), stack, records)
            for stack, records in self._by_stack().items()
            if len(records) >= _LEAST_COUNT and len(records) > self._earlier.get(stack, 0)
        ]
        many = [one for one in many if one[0] >= _LEAST_BYTES]
        if not many:
            return
        wanted = {record.key for _bytes, _stack, records in many for record in records}
        objects: dict[int, list] = {}
        graphs = []
        lasting = set()
        for one in gc.get_objects():
            if not issubclass(type(one), torch.Tensor):
                continue
            try:
                key = storage_id(one)
                if isinstance(one, torch.nn.Parameter) or one.is_leaf and one.requires_grad:
                    lasting.add(key)
                    if one.grad is not None:
                        lasting.add(storage_id(one.grad))
                    continue
                if one.grad_fn is not None and one.is_cuda:
                    graphs.append(one)
            except (RuntimeError, NotImplementedError):  # sparse, nested, wrapped by vmap
                continue
            if key in wanted:
                objects.setdefault(key, []).append(one)
        self._own = {id(objects), id(graphs), *(id(each) for each in objects.values())}
        names = self._names()
        of_graph: dict | None = None
        chosen = sorted(many, key=lambda one: -one[0])
        for size, stack, records in chosen[:_MOST_LINES]:
            records = [record for record in records if record.key not in lasting]
            if len(records) < _LEAST_COUNT or len(self._found) >= _MOST_FOUND and stack not in self._found:
                continue
            if stack in self._found and len(records) * _FEWER < self._found[stack]["count"]:
                continue  # they begin anew: another epoch
            samples = [records[len(records) * part // 8] for part in range(1, 1 + _SAMPLES)]
            tensors = [objects[record.key][0] for record in samples if record.key in objects]
            found = {
                "lines": self._lines(stack),
                "count": len(records),
                "bytes": sum(record.size_bytes for record in records),
                "has_graph": any(self._graph_keeps(tensor, wanted) for tensor in tensors),
                "graph_is_freed": any(tensor.grad_fn is not None for tensor in tensors),
                "holder": "",
                "length": 0,
                "limit": 0,
            }
            held = self._holder(tensors, names, len(records)) if tensors else None
            if held is not None:
                found.update(held)
            elif graphs:
                if of_graph is None:
                    of_graph = self._holder_of_graphs(graphs, names, wanted)
                found.update(of_graph)
            found["graph"] = held is None and bool(graphs)
            if found["holder"] != _OPTIMIZER:
                self._found[stack] = found

    def _lines(self, stack: int) -> list[str]:
        parents = {number: (key[0], key[1], key[2]) for key, number in self._memory.stacks._nodes.items()}
        lines = []
        while stack in parents and len(lines) < 64:
            stack, code, instruction = parents[stack]
            if not is_library(code.co_filename) and not is_own(code.co_filename):
                lines.append(f"{code.co_filename}:{_line(code, instruction)}")
        return lines

    # --- what holds them

    def _names(self) -> dict[int, tuple[str, str]]:
        """Variables of functions that run, and of their modules: by the object, its name and whose it is."""
        names: dict[int, tuple[str, str]] = {}
        main = sys.modules.get("__main__")
        modules = {id(vars(main)): vars(main)} if main is not None else {}
        self._running = set()
        for frame in sys._current_frames().values():
            while frame is not None:
                self._running.add(id(frame))
                frame = frame.f_back
        for frame in program_frames(sys._getframe(1)):
            modules[id(frame.f_globals)] = frame.f_globals
            if frame.f_code.co_name != "<module>":
                for name, value in _variables(frame):
                    names.setdefault(id(value), (name, f" in {frame.f_code.co_name}()"))
        for variables in modules.values():
            for name, value in list(variables.items()):
                if not name.startswith("__"):
                    names.setdefault(id(value), (name, ""))
        self._globals = set(modules)
        return names

    def _holder(self, tensors, names, count: int) -> dict | None:
        """The longest of the named things that are nearest above the tensors; None: no object refers to them, which leaves a graph."""
        chain, current, limits = {id(one) for one in tensors}, list(tensors), {}
        for level in range(_LEVELS):
            above, named = [], []
            for one in gc.get_referrers(*current):
                if one is current or one is tensors or id(one) in chain or id(one) in self._own:
                    continue
                if type(one) is types.FrameType and id(one) not in self._running and not _is_of_a_library(one):
                    text = f"the variables of {one.f_code.co_name}(), which is over: an error or a generator keeps them"
                    named.append({"holder": text, "limit": 0, "length": 1})
                    continue
                if _is(one, _NOT_HOLDERS) or type(one) is dict and id(one) in self._globals:
                    continue
                if _is(one, _Cache):
                    info = one.cache_info()
                    limit = f"maxsize={info.maxsize}" if info.maxsize else "without a limit"
                    text = f"the lru_cache of {getattr(one, '__name__', 'a function')} ({limit})"
                    named.append({"holder": text, "limit": info.maxsize or 0, "length": info.currsize})
                elif _is(one, _CONTAINERS):
                    if type(one) is not tuple and not self._is_attributes(one):
                        limits = max(limits, self._limit(one, count), key=lambda known: known.get("length", 0))
                    if id(one) in names:
                        name, where = names[id(one)]
                        named.append({"holder": f"{name}, {_kind(one)}{where}", **(limits or self._limit(one, count))})
                    else:
                        above.append(one)
                elif (attribute := _attribute(one, chain)) is not None:
                    name, value = attribute
                    if _is(one, torch.optim.Optimizer):
                        return {"holder": _OPTIMIZER}
                    text = f"{name} of {type(one).__name__}, {_kind(value)}"
                    named.append({"holder": text, **(limits or self._limit(value, count))})
            if named:
                return max(named, key=lambda one: one["length"])
            if not above:
                is_variable = any(id(tensor) in names for tensor in tensors)
                return None if level == 0 and not is_variable else limits
            chain.update(id(one) for one in above)
            current = above[:50]
        return limits

    def _is_attributes(self, one) -> bool:
        """Of an object: then it is the object that holds."""
        return type(one) is dict and any(
            _dictionary(owner) is one for owner in gc.get_referrers(one) if not _is(owner, _NOT_HOLDERS)
        )

    def _limit(self, one, count: int) -> dict:
        if _is(one, deque):
            return {"limit": one.maxlen or 0, "length": len(one)}
        if type(one) is list:  # one that was as long before, with fewer of the tensors: filled in place
            length, earlier = self._lengths.get(id(one), (0, count))
            self._lengths[id(one)] = (len(one), count)
            return {"limit": len(one) if length == len(one) and count > earlier else 0, "length": len(one)}
        return {"limit": 0, "length": len(one) if _is(one, _CONTAINERS) else 1}

    def _graph_keeps(self, tensor, wanted: set) -> bool:
        """Has it a graph that holds others of those that pile up? backward() lets go of them and leaves the graph."""
        seen, waiting, own = set(), [tensor.grad_fn], storage_id(tensor)
        unseen, self._memory.unseen = self._memory.unseen, True  # a hook of the program may make a tensor anew
        try:
            while waiting and len(seen) < _MOST_NODES:
                node = waiting.pop()
                if node is None or node in seen:
                    continue
                seen.add(node)
                if any(storage_id(one) in wanted and storage_id(one) != own for one in _saved(node)):
                    return True
                waiting += [before for before, _ in node.next_functions]
        finally:
            self._memory.unseen = unseen
        return len(seen) >= _MOST_NODES

    def _holder_of_graphs(self, graphs, names, wanted: set) -> dict:
        """The container of tensors with a graph; else the variable with the longest graph of those that keep what piles up."""
        ids = {id(tensor) for tensor in graphs}
        most, container = 2, None
        for one in gc.get_objects():
            if _is(one, _CONTAINERS) and id(one) not in self._own and id(one) not in self._globals:
                count = sum(map(ids.__contains__, map(id, gc.get_referents(one))))
                if count > most:
                    most, container = count, one
        if container is not None:
            name, where = names.get(id(container), ("", ""))
            held = {"holder": f"{name}, {_kind(container)}{where}"} if name else self._holder([container], names, 0)
            if held and held.get("holder"):
                limit = self._limit(container, 0) if _is(container, deque) else {}
                return {"holder": held["holder"], **limit}
        named = [tensor for tensor in graphs if id(tensor) in names and self._graph_keeps(tensor, wanted)]
        if not named:
            return {}
        name, where = names[id(max(named, key=_graph_length))]
        return {"holder": f"{name}, a tensor{where}"}


def _line(code, instruction: int) -> int:
    for begin, end, line in code.co_lines():
        if begin <= instruction < end:
            return line or 0
    return code.co_firstlineno


def _is_of_a_library(frame) -> bool:
    return is_library(frame.f_code.co_filename) or is_own(frame.f_code.co_filename)


def _is(one, kinds) -> bool:
    """By its type alone: isinstance() asks the object for its __class__, which may run code of its own (a lazy module's import, a deprecated name's warning)."""
    return issubclass(type(one), kinds)


def _dictionary(one):
    """The attributes that it has itself, without asking it."""
    try:
        return object.__getattribute__(one, "__dict__")
    except (AttributeError, TypeError):
        return None


def _kind(one) -> str:
    if isinstance(one, deque):
        return f"a deque of at most {one.maxlen:,}" if one.maxlen is not None else "a deque"
    return f"a{'n' if type(one).__name__[0] in 'aeiouAEIOU' else ''} {type(one).__name__}"


def _attribute(one, chain: set[int]):
    """The attribute of an object that is on the way."""
    variables = _dictionary(one)
    if type(one).__module__.partition(".")[0] == __name__.partition(".")[0] or type(variables) is not dict:
        return None
    return next(((name, value) for name, value in list(variables.items()) if id(value) in chain), None)


def _saved(node) -> list:
    """What it keeps for the backward pass; nothing where that was let go."""
    found = []
    for name in dir(node):
        if name.startswith("_saved_") or name == "saved_tensors":
            try:
                value = getattr(node, name)
            except Exception:  # it is freed
                continue
            found += value if isinstance(value, (tuple, list)) else [value]
    return [one for one in found if isinstance(one, torch.Tensor) and one.is_cuda and one.layout is torch.strided]


def _graph_length(tensor) -> int:
    seen, waiting = set(), [tensor.grad_fn]
    while waiting and len(seen) < 2000:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [before for before, _ in node.next_functions]
    return len(seen)
