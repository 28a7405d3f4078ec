"""The statements by which a loop may end, or a function before its work."""

from __future__ import annotations

import ast


def calls(node) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


class End:
    """A condition that ends a loop: `while`, or an `if` that leaves it or sets a mark by which it ends."""

    def __init__(self, statement, around, scope: str, mark=None, decided=None):
        """decided: the part of a condition that the value decides."""
        self.statement, self._around, self.scope, self._mark = statement, around, scope, mark
        self._limits = []
        self.is_unlimited = False
        if isinstance(statement, ast.While):
            test = statement.test
            parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else []
            self._limits = [part for part in parts if part is not decided and not calls(part)]
            leaves = any(isinstance(n, (ast.Break, ast.Return, ast.Raise)) for n in ast.walk(statement))
            self.is_unlimited = not self._limits and not leaves

    def holds(self, line: int) -> bool:
        """Is it the statement's own line? Of an `if`, also what stands under it."""
        ends = self.statement.test if isinstance(self.statement, ast.While) or self._mark else self.statement
        return self.statement.lineno <= line <= (ends.end_lineno or line)

    def has_inside(self, other: End) -> bool:
        return self.statement is not other.statement and any(
            node is other.statement for node in ast.walk(self.statement)
        )

    def is_taken(self, line: int, frame) -> bool:
        """line: the first one behind it; 0: the function returns."""
        if self._mark is not None:
            name, value = self._mark
            return frame.f_locals.get(name, frame.f_globals.get(name)) is value
        if line and self._around.lineno <= line <= self._around.end_lineno:
            return False
        return not any(_is_false(limit, frame) for limit in self._limits)


def _is_false(limit, frame) -> bool:
    """A condition of plain numbers that no longer holds."""
    names = [n.id for n in ast.walk(limit) if isinstance(n, ast.Name)]
    values = {name: frame.f_locals.get(name, frame.f_globals.get(name)) for name in names}
    if any(isinstance(n, ast.Attribute) for n in ast.walk(limit)) or any(
        type(value) not in (int, float, bool) for value in values.values()
    ):
        return False
    try:
        return not eval(compile(ast.Expression(limit), "limit", "eval"), {"__builtins__": {}}, values)
    except Exception:
        return False
