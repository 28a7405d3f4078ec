"""Whether a number that a dry run does not compute can decide what the program takes: a size, or a branch.

The number that the program reads is a plain one, so its way is followed in the source, from the statement that reads it: through assignments, arithmetic and what functions of the
same file return, to a call, a slice or a condition. What is only printed, logged, kept in a list or divided to a share (a loss, an accuracy) decides nothing, and neither does a
condition that only ends a loop or raises: the dry run goes on there, which is the most. Reads that a library makes are its own affair.

A fraction that is compared (a loss with the best so far) decides a branch for certain only where the branch itself makes tensors, or calls what does; calls that nobody can look into are
worth a note, and no more: they save checkpoints and write logs in every other program.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys

from .._file_owner import is_library, is_own

SIZE, BRANCH, PERHAPS = "size", "branch", "perhaps"  # the last: a branch that may take something, or not
_FRACTION, _WHOLE, _TRUTH, _COMPARED = "fraction", "whole", "truth", "compared"
_ROUNDS = {"int", "round", "ceil", "floor", "trunc"}
_KEEPS = {"max", "min", "abs", "sum", "list", "tuple", "sorted", "item", "tolist", "pow", "bool", "zip", "any", "all"}
_ONLY_TELLS = set(
    "print info debug warning warn error critical log write append extend add add_scalar add_scalars set_postfix set_description update str repr format join "
    "float tensor as_tensor fill_ decode get chr put isnan isinf isfinite isclose step save setdefault count dump dumps record log_metric log_metrics len set "
    "assertEqual synchronize exit".split()
)
_IN_LIGHT = _ONLY_TELLS | _KEEPS | _ROUNDS | {"detach", "clone", "cpu", "state_dict", "numpy"}
_MAKES = set(
    "zeros ones rand randn empty full randint arange linspace eye cat stack zeros_like ones_like rand_like randn_like empty_like full_like new_zeros new_ones "
    "new_empty new_full repeat repeat_interleave cuda matmul bmm einsum backward".split()
)
_trees: dict = {}
_judged: dict = {}


def _tree(file: str):
    """The file's syntax, and each node's parent; None where there is no source."""
    if file not in _trees:
        try:
            tree = ast.parse("".join(linecache.getlines(file)) or "?")
            _trees[file] = tree, {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        except (SyntaxError, ValueError, RecursionError):
            _trees[file] = None
    return _trees[file]


def of_read(value) -> tuple[str, str] | None:
    """What a stand-in that is read now may decide, and the line that reads it; None: nothing."""
    frame = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or is_library(frame.f_code.co_filename):
        return None
    kind = _TRUTH if isinstance(value, bool) else _WHOLE if isinstance(value, int) else _FRACTION
    key = (frame.f_code.co_filename, frame.f_lineno, kind)
    if key not in _judged:
        try:
            _judged[key] = _Way(key[0]).judge(key[1], kind)
        except RecursionError:
            _judged[key] = None
    return (_judged[key], f"{key[0]}:{key[1]}") if _judged[key] else None


def of_copy() -> tuple[str, str] | None:
    """The same for whole numbers that tolist() reads; other copies are the program's data."""
    frame = sys._getframe(1)
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or "tolist(" not in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
        return None
    return of_read(0)


def at(line: str) -> str:
    return os.path.basename(line)


def _name(func) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _is_light(statements) -> bool:
    """Nothing here takes memory of the GPU that would not be taken otherwise."""
    for statement in statements:
        if isinstance(statement, (ast.Raise, ast.Break, ast.Continue, ast.Pass)):
            continue
        if isinstance(statement, ast.If) and not (_is_light(statement.body) and _is_light(statement.orelse)):
            return False
        if not isinstance(statement, (ast.If, ast.Return, ast.Expr, ast.Assign, ast.AugAssign, ast.Assert)):
            return False
        parts = [statement.test] if isinstance(statement, ast.If) else [statement]
        for node in (inner for part in parts for inner in ast.walk(part)):
            if isinstance(node, ast.Call) and _name(node.func) not in _IN_LIGHT:
                return False
    return True


class _Way:
    def __init__(self, file: str):
        self.found = _tree(file)
        self.seen: set = set()

    def judge(self, line: int, kind: str) -> str | None:
        if self.found is None:
            return SIZE if kind == _WHOLE else None
        self.tree, self.parents = self.found
        statement = self._statement(line)
        if statement is None:
            return None
        heads = _heads(statement)
        reads = [
            node
            for head in heads
            for node in ast.walk(head)
            if isinstance(node, ast.Call)
            and (_name(node.func) in {"item", "tolist", "__int__"} or _name(node.func) in _ROUNDS | {"float", "bool"})
            and node.lineno <= line <= (node.end_lineno or line)
        ]
        if reads:
            return self._first(self._climb(node, self._level(node, kind)) for node in reads)
        if isinstance(statement, (ast.If, ast.While)):
            return self._condition(statement)
        return self._first(
            self._climb(node, kind)
            for head in heads
            for node in ast.walk(head)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        )

    def _level(self, node, kind: str) -> str:
        return _WHOLE if _name(node.func) in _ROUNDS else _FRACTION if _name(node.func) == "float" else kind

    def _first(self, results) -> str | None:
        results = set(results)
        return next((what for what in (SIZE, BRANCH, PERHAPS) if what in results), None)

    def _statement(self, line: int):
        inner = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                if inner is None or node.lineno >= inner.lineno:
                    inner = node
        return inner

    def _condition(self, node, level: str = _TRUTH) -> str | None:
        if isinstance(node, ast.While):
            return None  # how often it goes round: it is told as a wait
        if _is_light(node.body) and _is_light(node.orelse):
            return self._numbers_set(node.body + node.orelse)
        if level != _COMPARED or self._takes(node.body + node.orelse, set()):
            return BRANCH
        return self._numbers_set(node.body + node.orelse) or PERHAPS

    def _numbers_set(self, statements) -> str | None:
        """A whole number that a branch chooses, and what it then decides; 0 and 1 are marks and counters."""
        return self._first(
            self._uses(target, _WHOLE)
            for statement in statements
            if isinstance(statement, ast.Assign) and _is_number(statement.value) and statement.value.value > 1
            for target in statement.targets
        )

    def _takes(self, statements, seen: set) -> bool:
        """Makes tensors, or calls what does, as far as the file shows it."""
        return any(
            self._makes(node, seen)
            for statement in statements
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
        )

    def _makes(self, call, seen: set) -> bool:
        name = _name(call.func)
        if name == "to":
            return not any(isinstance(a, ast.Constant) and a.value == "cpu" for a in call.args)
        if name in _MAKES or name in seen or not name:
            return name in _MAKES
        seen.add(name)
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                if self._takes(node.body, seen):
                    return True
            elif isinstance(node, ast.Assign) and isinstance(call.func, ast.Name):  # a model that was moved
                if any(_name(target) == name for target in node.targets) and self._is_moved(node.value):
                    return True
        return False

    def _is_moved(self, value) -> bool:
        return any(isinstance(n, ast.Call) and _name(n.func) in ("cuda", "to") for n in ast.walk(value))

    def _climb(self, node, level: str) -> str | None:
        """From an expression that has the number to what it decides."""
        while (node, level) not in self.seen:
            self.seen.add((node, level))
            before, node = node, self.parents.get(node)
            if node is None or isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.Expr, ast.Assert, ast.Raise)):
                return None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                level = _FRACTION
            elif isinstance(node, ast.Compare):
                level = _COMPARED if level in (_FRACTION, _COMPARED) else _TRUTH
            elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and before is node.test:
                if level == _FRACTION:
                    return None
                if not isinstance(node, ast.IfExp):
                    return self._condition(node, level)
                if level == _TRUTH or self._takes([node.body, node.orelse], set()):
                    return BRANCH
                if not (_is_number(node.body) and _is_number(node.orelse)):
                    return None
                level = _WHOLE
            elif isinstance(node, ast.Call):
                name = _name(node.func)
                if name in _ROUNDS:
                    level = _WHOLE
                elif before is not node.func and name not in _KEEPS:
                    return SIZE if level == _WHOLE and name not in _ONLY_TELLS else None
            elif isinstance(node, ast.Subscript):
                if before is not node.value:
                    return None  # one element
            elif isinstance(node, ast.Slice):
                return SIZE if level == _WHOLE else None
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                result = self._first(self._uses(target, level) for target in targets)
                if result or not isinstance(node, ast.NamedExpr):
                    return result
            elif isinstance(node, (ast.Return, ast.Yield)):
                return self._callers(node, level)
            elif isinstance(node, (ast.For, ast.AsyncFor)):
                return self._uses(node.target, level)
            elif isinstance(node, ast.comprehension):
                return self._uses(node.target, level)
            elif isinstance(node, ast.stmt):
                return None
        return None

    def _scope(self, node):
        while node is not None and not isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
        ):
            node = self.parents.get(node)
        return node

    def _uses(self, target, level: str) -> str | None:
        if isinstance(target, (ast.Tuple, ast.List)):
            return self._first(self._uses(part, level) for part in target.elts)
        if isinstance(target, ast.Attribute):
            same = [n for n in ast.walk(self.tree) if isinstance(n, ast.Attribute) and n.attr == target.attr]
        elif isinstance(target, ast.Name):
            scope = self._scope(target) or self.tree
            same = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == target.id]
        else:
            return None  # an entry of a table
        return self._first(self._climb(node, level) for node in same if isinstance(node.ctx, ast.Load))

    def _callers(self, node, level: str) -> str | None:
        function = getattr(self._scope(node), "name", None)
        calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and function and _name(n.func) == function]
        return self._first(self._climb(call, level) for call in calls)


def _is_number(value) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _heads(statement) -> list:
    """What a statement computes itself, without the statements in it."""
    return [
        child
        for child in ast.iter_child_nodes(statement)
        if not isinstance(child, (ast.stmt, ast.ExceptHandler)) and not isinstance(child, ast.arguments)
    ]
