"""The loop around optimizer.step() with gradients accumulated over several batches, as its user would write it: what is left over at its end makes a step, too. Where the
source does not tell how many rounds the loop has, or its rounds are not all alike, nothing is shown."""

from __future__ import annotations

import ast
import re
import sys
from typing import NamedTuple

from ...source.edits import Edit, name_called, split_place, unused_name
from ...source.reader import source_of_program

_AROUND = ("tqdm", "track")  # give what they are given
_OF_A_STEP = ("step", "unscale_", "clip_grad_norm_", "clip_grad_value_")
_MARKS = (*_OF_A_STEP, "backward", "zero_grad")


class _Loop(NamedTuple):
    file: str
    at: int  # the line of the step
    lines: list[str]
    tree: ast.Module
    node: ast.For


class _Counter(NamedTuple):
    index: str  # of the round, from 0
    done: str  # rounds with this one
    edits: list[Edit]


def lengths_at(step_place: str) -> set[str]:
    """Of what the loop around the step goes through: what has a length, as the source names it. Asked while the loop runs."""
    loop = _loop_around(step_place)
    frame = sys._getframe(1)
    while frame is not None and loop is not None:
        if frame.f_code.co_filename == loop.file and frame.f_lineno == loop.at:
            data = _data(loop.node)
            names = _chain(data)
            try:
                value = {**frame.f_globals, **frame.f_locals}[names[0]]
                for name in names[1:]:
                    value = vars(value)[name]
                len(value)
            except Exception:  # no such name, an attribute that is computed, or no length
                return set()
            return {ast.unparse(data)}
        frame = frame.f_back
    return set()


def accumulation_edits(step_place: str, many, have_length=frozenset()) -> list[Edit]:
    """Gradients of so many batches for one step, where the loop's lines are of the usual form."""
    loop = _loop_around(step_place)
    if loop is None or loop.node.orelse or any(_leaves_early(node) for node in loop.node.body):
        return []
    file, at, lines, _tree, node = loop
    calls = {one.lineno: one for one in node.body if _is_call(one) and one.lineno == one.end_lineno}
    marked = [one for one in ast.walk(node) if isinstance(one, ast.Call) and name_called(one) in _MARKS]
    if at not in calls or any(";" in lines[line - 1] for line in calls):
        return []
    if any(calls.get(one.lineno) is None or calls[one.lineno].value is not one for one in marked):
        return []
    named = {line: name_called(call.value) for line, call in calls.items()}
    backward = [line for line, name in named.items() if name == "backward"]
    length, counter = _length(loop, have_length), _counter(loop)
    if "zero_grad" not in named.values() or len(backward) != 1 or not length or counter is None:
        return []
    index = counter.index if counter.index.isidentifier() else f"({counter.index})"
    done = counter.done if counter.done.isidentifier() else f"({counter.done})"
    ends = f"{done} % {many} == 0 or {counter.done} == {length}"
    divided = _divided(loop, backward[0], f"min({many}, {length} - {index} // {many} * {many})")
    if not divided:
        return []
    edits = [*counter.edits, Edit(file, backward[0], [lines[backward[0] - 1]], [divided])]
    owner = _owner(calls[at])
    for line, name in named.items():
        if name == "zero_grad" and line < backward[0]:
            when = f"{index} % {many} == 0"
        elif name == "zero_grad" and line > at or name in _OF_A_STEP and line > backward[0]:
            when = ends
        elif name == "update" and _owner(calls[line]) == owner:  # of a scaler
            when = ends
        elif name in ("zero_grad", *_OF_A_STEP):
            return []
        else:
            continue
        text = lines[line - 1]
        edits.append(Edit(file, line, [text], [f"{text[: calls[line].col_offset]}if {when}:", "    " + text]))
    return edits


def accelerated_edits(step_place: str) -> list[Edit] | None:
    """What accelerate wants of a loop beside its switch: each round under accumulate(), and gradients that are cleared behind the step, for what it skips in a round it skips there. Nothing where the file
    has that already; None: the loop is of another form."""
    loop = _loop_around(step_place)
    if loop is None:
        return None
    if any(isinstance(one, ast.Call) and name_called(one) == "accumulate" for one in ast.walk(loop.tree)):
        return []
    file, at, lines, tree, node = loop
    calls = {one.lineno: one.value for one in node.body if _is_call(one) and one.lineno == one.end_lineno}
    named = {line: name_called(call) for line, call in calls.items()}
    marked = [one for one in ast.walk(node) if isinstance(one, ast.Call) and name_called(one) in _MARKS]
    backward = [line for line, name in named.items() if name == "backward"]
    cleared = [line for line, name in named.items() if name == "zero_grad"]
    models = _prepared(tree) & {ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
    first, last = node.body[0].lineno, node.body[-1].end_lineno
    if (
        node.orelse
        or first == node.lineno
        or len(backward) != 1
        or len(models) != 1
        or not cleared
        or at not in calls
        or any(calls.get(one.lineno) is not one for one in marked)
        or any(backward[0] < line < at for line in cleared)
        or any(";" in lines[line - 1] for line in calls)
        or any(_is_long_text(one) for one in ast.walk(node))
    ):
        return None
    accelerator = calls[backward[0]].func
    if not isinstance(accelerator, ast.Attribute) or not calls[backward[0]].args:
        return None  # loss.backward()
    indent = " " * node.body[0].col_offset
    early = [line for line in cleared if line < at]
    new = [f"{indent}with {ast.unparse(accelerator.value)}.accumulate({models.pop()}):"]
    for line in range(first, last + 1):
        behind = [line, *early] if line == at else [] if line in early else [line]
        new += ["    " + lines[one - 1] if lines[one - 1].strip() else "" for one in behind]
    return [Edit(file, first, lines[first - 1 : last], new)]


def _prepared(tree: ast.Module) -> set[str]:
    """What accelerate was given, as the source names it."""
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and name_called(one) == "prepare"]
    return {ast.unparse(argument) for call in calls for argument in call.args}


def _is_long_text(node) -> bool:
    """Its further lines are not to be indented."""
    return isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno != node.lineno


def _loop_around(step_place: str) -> _Loop | None:
    file, at = split_place(step_place)
    source = source_of_program(file)
    if source is None:
        return None
    lines, tree = source.lines, source.tree
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and node.lineno < at <= node.end_lineno]
    return _Loop(file, at, lines, tree, max(loops, key=lambda node: node.lineno)) if loops else None


def _is_call(node) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _owner(statement) -> str:
    function = statement.value.func
    return ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""


def _leaves_early(node) -> bool:
    """A round that ends before its last line, or a loop before its last round."""
    if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
        return True
    if isinstance(node, (ast.For, ast.While)):
        return any(isinstance(inner, ast.Return) for inner in ast.walk(node)) or any(map(_leaves_early, node.orelse))
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return False
    return any(map(_leaves_early, ast.iter_child_nodes(node)))


def _written(node: ast.For) -> set[str]:
    """Names that the loop gives another value."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}


def _data(node: ast.For):
    """What it goes through."""
    data = node.iter
    while isinstance(data, ast.Call) and data.args and name_called(data) in (*_AROUND, "enumerate"):
        data = data.args[0]
    return data


def _chain(node) -> list[str]:
    """self.data.loader, by its names; empty: it is something else."""
    if isinstance(node, ast.Name):
        return [node.id]
    before = _chain(node.value) if isinstance(node, ast.Attribute) else []
    return [*before, node.attr] if before else []


def _length(loop: _Loop, have_length) -> str:
    """How many rounds it has, as its source can say it; empty: it cannot."""
    data = _data(loop.node)
    if {one.id for one in ast.walk(data) if isinstance(one, ast.Name)} & _written(loop.node):
        return ""
    if isinstance(data, ast.Call) and name_called(data) in ("range", "trange") and 1 <= len(data.args) <= 3:
        if any(isinstance(argument, ast.Starred) for argument in data.args):
            return ""
        arguments = ", ".join(ast.unparse(argument) for argument in data.args)
        only = data.args[0] if len(data.args) == 1 else None
        plain = isinstance(only, (ast.Constant, ast.Name, ast.Attribute)) or (
            isinstance(only, ast.Call) and name_called(only) == "len"
        )
        return arguments if plain else f"len(range({arguments}))"
    text = ast.unparse(data)
    return f"len({text})" if _chain(data) and text in have_length else ""


def _counter(loop: _Loop) -> _Counter | None:
    """What counts the rounds; the loop's line with one where it has none."""
    node, body = loop.node, {name for one in loop.node.body for name in _written(one)}
    call = node.iter if isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name) else None
    called = call.func.id if call is not None else ""
    counts = called in ("range", "trange") and len(call.args) == 1
    if counts and isinstance(node.target, ast.Name) and node.target.id not in body | {"_"}:
        return _Counter(node.target.id, f"{node.target.id} + 1", [])
    first = node.target.elts[0] if isinstance(node.target, ast.Tuple) and node.target.elts else None
    if called == "enumerate" and isinstance(first, ast.Name) and first.id not in body | {"_"}:
        start = [*call.args[1:], *(word.value for word in call.keywords)]
        start = start[0].value if start and isinstance(start[0], ast.Constant) else 0 if not start else None
        if type(start) is int and 0 <= start <= 1:
            name = first.id
            return _Counter(f"{name} - 1", name, []) if start else _Counter(name, f"{name} + 1", [])
    text = loop.lines[node.lineno - 1]
    if node.iter.end_lineno != node.lineno or not text.rstrip().endswith(":"):
        return None
    name = unused_name(loop.tree, ("i", "batch_index", "batch_number"))
    source = text.encode()[node.iter.col_offset : node.iter.end_col_offset].decode()
    if counts and isinstance(node.target, ast.Name) and node.target.id == "_":
        head = f"for {name} in {source}:"
    else:
        target = ast.unparse(node.target)
        if isinstance(node.target, ast.Tuple):
            parts = [ast.unparse(one) for one in node.target.elts]
            target = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        head = f"for {name}, {target} in enumerate({source}):"
    return _Counter(name, f"{name} + 1", [Edit(loop.file, node.lineno, [text], [text[: node.col_offset] + head])])


def _divided(loop: _Loop, line: int, by: str) -> str:
    """The line of backward() with its loss divided, a mean as it is; empty: it is of another form."""
    text = loop.lines[line - 1]
    loss = r"([A-Za-z_][\w.]*)"  # a name, or out.loss
    found = re.match(rf"(\s*){loss}\.backward\(\)", text) or re.match(rf"(\s*[\w.]+\(){loss}\)\.backward\(\)", text)
    if not found:
        return ""
    for one in ast.walk(loop.node):  # a sum is not divided
        made = (found[2], found[2].partition(".")[0])
        if isinstance(one, ast.Assign) and any(ast.unparse(target) in made for target in one.targets):
            words = [word for call in ast.walk(one.value) if isinstance(call, ast.Call) for word in call.keywords]
            if (
                isinstance(one.value, ast.Call)
                and name_called(one.value) == "sum"
                or any(word.arg == "reduction" and getattr(word.value, "value", "") == "sum" for word in words)
            ):
                return ""
    head, rest = found[1], text[found.end() :]
    inside = f"{found[2]} / {by}"
    return f"{head}{inside}).backward(){rest}" if head.endswith("(") else f"{head}({inside}).backward(){rest}"
