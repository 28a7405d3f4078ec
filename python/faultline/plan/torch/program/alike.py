"""Steps that are alike: they make as many operations and requests, and leave the same memory. A program whose last steps are alike, in a loop whose source shows nothing by which a further
round would differ (a counter, an attribute, a hook, a container that changes) and that has more of them than there is time for, is not run on for them."""

from __future__ import annotations

import ast
import functools
import sys
import types

import torch

from ...._file_owner import is_library, is_own
from ...source.reader import is_of_program, program_frames, program_sources, source_of

_ALIKE = 3  # so many steps in a row
_DEEPEST = 4  # functions of the program that are looked into, one from the other
# Calls that only tell: what stands under a condition with nothing else changes no memory of the GPU.
_TELLING = {"print", "log", "info", "debug", "warning", "write", "flush", "set_postfix", "set_postfix_str"}
_TELLING |= {
    "set_description",
    "add_scalar",
    "add_scalars",
    "log_metrics",
    "update",
    "perf_counter",
    "time",
    "monotonic",
}
_COUNTING = {
    "item",
    "float",
    "int",
    "len",
    "round",
    "str",
    "format",
    "min",
    "max",
    "sum",
    "exp",
    "sqrt",
    "append",
    "join",
}
# What changes a container, which the next round finds.
_CHANGING = {"append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "setdefault", "put", "get_nowait"}


class StepsSeen:
    """How each step compares with the one before."""

    def __init__(self, session):
        self._session = session
        self._last = self._counts = None
        self._in_a_row = 0
        self.last_other = 0  # the last step that was not like the one before it

    def ended(self, step: int) -> None:
        session = self._session
        each = [session.device.stats(place) for place in range(len(session.gpus))]
        counts = session.mode.operations_on_gpu, sum(s.allocations for s in each)
        before, self._counts = self._counts, counts
        memory = [(s.allocated_bytes, s.reserved_bytes, s.peak_allocated_bytes, s.peak_reserved_bytes) for s in each]
        failed = sum(s.out_of_memories for s in each)
        this = None if before is None else ([now - then for now, then in zip(counts, before)], memory, failed)
        if this is not None and this == self._last:
            self._in_a_row += 1
        else:
            self._in_a_row, self.last_other = 1, step
        self._last = this

    def are_enough(self, seconds_each: float, worth_seconds: float) -> str:
        """Why no more are needed; "" where they may be."""
        if self._in_a_row < _ALIKE:
            return ""
        try:
            loop = _loop_of(sys._getframe(1))
        except (OSError, SyntaxError, ValueError, RecursionError, AttributeError, TypeError):
            return ""
        if loop is None or loop.left * seconds_each <= worth_seconds:
            return ""
        return f"the last {self._in_a_row} were alike, and the source shows nothing by which a later one would not be ({loop.where}, {loop.rounds:,} rounds)"


class _Loop:
    def __init__(self, where: str, rounds: int, left: int):
        self.where, self.rounds, self.left = where, rounds, left


def _loop_of(frame) -> _Loop | None:
    """The loop of the program around what runs now, if each of its rounds does the same."""
    inside: set = set()
    for at in program_frames(frame):
        function = _function_of(at.f_code)
        inside.add(at.f_code)
        loops = [node for node in _within(function) if _is_loop(node) and _holds(node, at.f_lineno)]
        if loops:
            return _judged(loops[-1], at, inside)
        if not _is_plain(function.body, at, at.f_lineno, set(), inside, 0):
            return None
    return None


def _judged(loop, frame, inside) -> _Loop | None:
    counted = _range_of(loop, frame)
    if counted is None:
        return None
    span, now = counted
    counters = {loop.target.id} | {
        node.target.id
        for node in _within(loop)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    }
    if loop.orelse or now not in span or not _is_plain(loop.body, frame, frame.f_lineno, counters, inside, 0):
        return None
    return _Loop(f"{frame.f_code.co_filename}:{loop.lineno}", len(span), len(span) - span.index(now) - 1)


def _function_of(code):
    source = source_of(code.co_filename)
    node = source.function_of(code) if source is not None else None
    if node is None:
        raise ValueError("a function without a source")
    return node


def _within(node):
    """All nodes below it that run with it, outer ones first: what a function that is defined there does is its own."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield child
            yield from _within(child)


def _is_loop(node) -> bool:
    return isinstance(node, (ast.For, ast.While, ast.AsyncFor))


def _holds(node, line: int) -> bool:
    return node.lineno <= line <= node.end_lineno


def _name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _range_of(loop, frame):
    """for i in range(…), also with a bar of tqdm around it: the range, and where it is."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return None
    made = loop.iter
    if isinstance(made, ast.Call) and _name_of(made) == "tqdm" and made.args:
        made = made.args[0]
    if not isinstance(made, ast.Call) or _name_of(made) not in ("range", "trange") or not 1 <= len(made.args) <= 3:
        return None
    numbers = [_number(argument, frame) for argument in made.args]
    now = frame.f_locals.get(loop.target.id)
    if type(now) is not int or any(type(number) is not int for number in numbers):
        return None
    return range(*numbers), now


def _number(node, frame):
    """Of a constant, a variable, an attribute of a plain object, and sums and products of such."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _number(node.value, frame)
        fields = getattr(owner, "__dict__", None)
        found = fields.get(node.attr) if isinstance(fields, dict) else None
        return (
            getattr(type(owner), node.attr, None)
            if found is None and type(getattr(type(owner), node.attr, None)) is int
            else found
        )
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, frame), _number(node.right, frame)
        if type(left) is not int or type(right) is not int:
            return None
        if isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            return {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)]
        return left // right if isinstance(node.op, ast.FloorDiv) and right else None
    return None


def _is_plain(body, frame, line: int, counters: set, inside: set, depth: int) -> bool:
    """Does it do the same whenever it runs? line: what runs now, so that it is known to run; 0 where that is not known."""
    return all(_statement_is_plain(statement, frame, line, counters, inside, depth) for statement in body)


def _statement_is_plain(node, frame, line, counters, inside, depth) -> bool:
    def plain(body):
        return _is_plain(body, frame, line, counters, inside, depth)

    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, ast.If):
        if all(_only_tells(one) for one in (*node.body, *node.orelse)):
            return True
        runs = line and any(_holds(one, line) for one in node.body)
        return bool(runs) and plain(node.body) and all(_only_tells(one) for one in node.orelse)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _is_same(node.items, frame, counters, inside, depth) and plain(node.body)
    if isinstance(node, ast.Try):
        return plain(node.body) and plain(node.orelse) and plain(node.finalbody)
    if isinstance(node, ast.For):
        return _is_same([node.iter], frame, counters, inside, depth) and plain(node.body) and plain(node.orelse)
    if (
        isinstance(node, (ast.While, ast.AsyncFor, ast.Break, ast.Continue, ast.Delete))
        or type(node).__name__ == "Match"
    ):
        return isinstance(node, ast.Delete)
    return _only_tells(node) or not _keeps_state(node) and _is_same([node], frame, counters, inside, depth)


def _keeps_state(node) -> bool:
    """Something that the next round finds: an attribute, an entry, a variable of another function, a number that is counted on."""
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return True
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        ends = node.value.left, node.value.right
        read = {one.id for one in ends if isinstance(one, ast.Name)}
        if any(isinstance(one, ast.Constant) for one in ends) and read & {getattr(t, "id", "") for t in targets}:
            return True
    is_constant = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    return not is_constant and any(
        isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Store)
        for target in targets
        if target is not None
        for part in ast.walk(target)
    )


def _only_tells(node) -> bool:
    """print(…), and numbers that are kept or summed for it."""
    if isinstance(node, ast.If):
        return all(_only_tells(one) for one in (*node.body, *node.orelse))
    if isinstance(node, ast.Pass):
        return True
    if not isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) or _keeps_state(node):
        return False
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    if isinstance(node, ast.Expr) and not calls:
        return True
    names = {_name_of(call) for call in calls}
    if "append" in names and "item" not in names and "float" not in names:
        return False
    return (
        bool(names & _TELLING | names & {"item", "append"})
        and names <= _TELLING | _COUNTING
        or (isinstance(node, (ast.Assign, ast.AugAssign)) and isinstance(node.value, ast.Constant))
    )


def _is_same(nodes, frame, counters, inside, depth) -> bool:
    for top in nodes:
        for node in (top, *_within(top)):
            if isinstance(node, ast.Name) and node.id in counters and isinstance(node.ctx, ast.Load):
                return False
            if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)):
                return False
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in _properties():
                return False
            if isinstance(node, ast.Call) and not _call_is_same(node, frame, inside, depth):
                return False
    return True


def _call_is_same(call, frame, inside, depth) -> bool:
    """What the program's own functions do is looked at, its models' too; what is a library's does the same for the same sizes."""
    name = _name_of(call)
    if (
        name in ("next", "iter", "eval", "exec", "__next__")
        or name in _CHANGING
        and isinstance(call.func, ast.Attribute)
    ):
        return False
    function = _number(call.func, frame)
    if isinstance(call.func, ast.Attribute) and not callable(function):
        owner = _number(call.func.value, frame)
        if isinstance(owner, torch.nn.Module) and name not in vars(type(owner)):
            return True
        if isinstance(owner, torch.optim.Optimizer) and _has_hooks(owner):
            return False
        function = vars(owner).get(name) if isinstance(owner, types.ModuleType) else getattr(type(owner), name, None)
        if owner is None and name in _functions():
            return False  # one of the program's, of which it is not known which
    function = getattr(function, "__wrapped__", function)
    if isinstance(function, torch.nn.Module):
        return _model_is_same(function, inside, depth)
    if not isinstance(function, (types.FunctionType, type)):
        called = getattr(type(function), "__call__", None)
        function = called if isinstance(called, types.FunctionType) else function
    return _function_is_same(function, inside, depth)


def _function_is_same(function, inside, depth) -> bool:
    if not isinstance(function, types.FunctionType) or is_library(function.__code__.co_filename):
        return True
    if is_own(function.__code__.co_filename) or function.__code__ in inside:
        return True
    if depth >= _DEEPEST:
        return False
    inside.add(function.__code__)
    there = types.SimpleNamespace(f_locals={}, f_globals=function.__globals__)
    return _is_plain(_function_of(function.__code__).body, there, 0, set(), inside, depth + 1)


def _has_hooks(owner) -> bool:
    """Functions of the program's own that run with it."""
    return any(
        is_of_program(code.co_filename)
        for name, hooks in vars(owner).items()
        if "hooks" in name and isinstance(hooks, dict)
        for hook in hooks.values()
        for code in [getattr(hook, "__code__", _has_hooks.__code__)]
    )


def _model_is_same(model, inside, depth) -> bool:
    for module in model.modules():
        if _has_hooks(module) or not _function_is_same(type(module).forward, inside, min(depth, _DEEPEST - 1)):
            return False
    return all(
        not getattr(parameter, "_backward_hooks", None) and not getattr(parameter, "_post_accumulate_grad_hooks", None)
        for parameter in model.parameters()
    )


@functools.lru_cache(maxsize=1)
def _defined() -> tuple[frozenset, frozenset]:
    """Names of the program's functions, and of those that an attribute's look runs."""
    functions, properties = set(), set()
    for source in program_sources():
        functions.update(source.functions)
        for node in (one for same in source.functions.values() for one in same):
            if any("property" in ast.dump(decorator) for decorator in node.decorator_list):
                properties.add(node.name)
    return frozenset(functions), frozenset(properties)


def _functions() -> frozenset:
    return _defined()[0]


def _properties() -> frozenset:
    return _defined()[1]
