"""%%faultline plan: a cell as a dry run, in a copy of the kernel. Nothing of the cell happens here."""

from __future__ import annotations

import ast
import inspect
import os
import sys

from ..report import Report, Section
from .kept_alive import Search
from .orders import BEGIN, Misused


class _Cell:
    """A function to `plan`: what the cell does."""

    def __init__(self, number, code, namespace):
        self.__name__ = f"cell [{number}]"
        self._code, self._namespace = code, namespace

    def __call__(self):
        sys.stderr = open(os.devnull, "w")  # the notebook's would show the copy's words as the kernel's own
        exec(self._code, self._namespace)


def plan_cell(shell, cells, order, cell) -> Report:
    from ..api import plan

    number = len(shell.history_manager.input_hist_parsed) - 1
    raw = f"{BEGIN} {order.verb}\n{cell}"
    body = cell.lstrip("\n")
    # lines count from the one that says %%faultline
    source = "\n" * (1 + len(cell) - len(body)) + shell.transform_cell(body)
    file = shell.compile.cache(source, number, raw)
    cells.note(file, number)
    flags = shell.compile.flags | getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
    code = compile(source, file, "exec", flags, True)
    if code.co_flags & inspect.CO_COROUTINE:
        raise Misused("a cell with await at its outermost level cannot be planned: put asyncio.run(…) into it")
    on_gpu = sorted(h.name for h in Search(shell).holders if h.kind == "variable" and h.name in code.co_names)
    if on_gpu:
        raise Misused(
            f"plan runs the cell in a copy of this kernel, which cannot use what lies on the GPU already: {', '.join(on_gpu)}. "
            "Put the lines that make it into this cell, or plan in a kernel that has not used the GPU"
        )
    made = plan(
        _Cell(number, code, shell.user_ns),
        order.gpu,
        real=order.real,
        steps=order.steps,
        seconds=order.seconds,
        try_changes=order.try_changes,
        allow_writes=order.allow_writes,
        offline=order.offline,
    )
    content = _without_order_line(cells.in_report(made.report), f"cell [{number}]")
    note = Section(f"Cell [{number}] was planned, not run", ("Its variables are as they were before.",), is_head=True)
    return Report(content, (note,))


def _without_order_line(part, cell):
    """The line that says %%faultline plan called all others, and is none of the cell's."""
    if isinstance(part, dict):
        return {key: _without_order_line(value, cell) for key, value in part.items()}
    if isinstance(part, list):
        called = {"file": cell, "line": 1}
        return [
            _without_order_line(one, cell)
            for one in part
            if not (isinstance(one, dict) and called.items() <= one.items())
        ]
    return part
