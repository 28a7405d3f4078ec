"""Whether a number that a dry run does not compute can decide what the program takes: a size, or a branch.

The number that the program reads is a plain one, so its way is followed in the source, from the statement that reads it: through assignments, arithmetic and what functions of the
same file return, keep in a container or are given, to a call, a slice or a condition. What is only printed, logged or divided to a share (a loss, an accuracy) decides nothing, and
neither does a condition that only ends a loop or raises: the dry run goes on there, which is the most. Reads that a library makes are its own affair.

Who is called is asked of the file (callees.py). A function that nobody can look into and whose name is that of one that only tells is not known: worth a note.

A fraction that is compared (a loss with the best so far) decides a branch for certain only where the branch itself makes tensors, or calls what does; calls that nobody can look into are
worth a note, and no more: they save checkpoints and write logs in every other program.
"""

from __future__ import annotations

import ast
import linecache
import os

from .callees import KEEPS, OWN, PERHAPS_OWN, TELLS, Callees
from .end_conditions import End, calls
from .reader import calling_frame, source_of

SIZE, BRANCH = "size", "branch"
PERHAPS, GIVEN = (
    "perhaps",
    "given",
)  # a branch that may take something, or not; a call that may make a size of it, or not
_FRACTION, _WHOLE, _TRUTH, _COMPARED = "fraction", "whole", "truth", "compared"
_KEPT = "kept"  # a whole number, in a container
_COUNTED = "counted"  # by a condition: it decides nothing but when a loop ends
_ROUNDS = {"int", "round", "ceil", "floor", "trunc"}
_OF_A_CONTAINER = {"max", "min", "sum", "pop"}
_KEEPS = {"max", "min", "abs", "sum", "list", "tuple", "sorted", "item", "tolist", "pow", "bool", "zip", "any", "all"}
# Names of functions that only tell, in most programs. Where it is not seen whose they are, this makes a note of what would be a verdict.
_MOSTLY_TELL = set(
    "info debug warning warn error critical log write append extend add add_scalar add_scalars set_postfix set_description update join tensor as_tensor decode get chr put "
    "isnan isinf isfinite isclose step save setdefault count dump dumps record log_metric log_metrics len set assertEqual synchronize print str repr format".split()
)
_NO_MEMORY = _ROUNDS | set(
    "detach cpu state_dict numpy item tolist sum any all max min bool float list tuple sorted zip exit".split()
)
_LIGHT, _UNSEEN, _HEAVY = range(3)  # what a branch takes of the GPU: nothing, nobody knows, perhaps something
_MAKES = set(
    "zeros ones rand randn empty full randint arange linspace eye cat stack zeros_like ones_like rand_like randn_like empty_like full_like new_zeros new_ones "
    "new_empty new_full repeat repeat_interleave cuda matmul bmm einsum backward".split()
)
_TRUTHS = {"any", "all", "bool", "item", "isfinite", "isnan", "isinf", "logical_not", "logical_and", "logical_or"}
_judged: dict = {}
_ends: dict = {}
_checks: dict = {}
_known_callees: dict = {}
_LOOPS = (ast.For, ast.While, ast.AsyncFor)


def of_read(value) -> tuple[str, str] | None:
    """What a stand-in that is read now may decide, and the line that reads it; None: nothing."""
    frame = calling_frame()
    if frame is None:
        return None
    kind = _TRUTH if isinstance(value, bool) else _WHOLE if isinstance(value, int) else _FRACTION
    key = (frame.f_code.co_filename, frame.f_lineno, kind)
    if key not in _judged:
        try:
            _judged[key] = _Following(key[0]).judge(key[1], kind)
        except RecursionError:
            _judged[key] = None
    return (_judged[key], f"{key[0]}:{key[1]}") if _judged[key] else None


def goes_on() -> bool | None:
    """The truth value with which an `if …: raise` or an `assert` of the program's, which reads one now, does not raise; None: it is no such statement."""
    frame = calling_frame()
    if frame is None:
        return None
    key = frame.f_code.co_filename, frame.f_lineno
    if key not in _checks:
        way = _Following(key[0])
        _checks[key] = _passes(way.statement(key[1]) if way.source is not None else None)
    return _checks[key]


def _passes(statement) -> bool | None:
    if isinstance(statement, ast.Assert):
        return _needed(statement.test, True)
    raises = isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise)
    return _needed(statement.test, False) if raises else None


def _needed(test, wanted: bool) -> bool | None:
    """What every truth value in the test must be, so that it is as wanted; None: that is not plain."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _needed(test.operand, not wanted)
    if isinstance(test, ast.BoolOp):
        needed = {_needed(part, wanted) for part in test.values}
        return needed.pop() if len(needed) == 1 else None
    if isinstance(test, ast.Call):
        return wanted if _name(test.func) in _TRUTHS else None
    if isinstance(test, ast.Compare):  # of tensors, not of a truth value that was read
        reads = any(isinstance(node, ast.Call) and _name(node.func) in _TRUTHS for node in ast.walk(test))
        return None if reads else wanted
    return wanted if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp)) else None


def of_copy() -> tuple[str, str] | None:
    """The same for whole numbers that tolist() reads; other copies are the program's data."""
    frame = calling_frame()
    if frame is None or "tolist(" not in linecache.getline(frame.f_code.co_filename, frame.f_lineno):
        return None
    return of_read(0)


def ends_after(file: str, line: int) -> list[End]:
    """The statements by which a number that is read on that line may end a loop, or a function before its work."""
    key = file, line
    if key not in _ends:
        way = _Following(file)
        try:
            way.judge(line, _WHOLE)
        except RecursionError:
            pass
        _ends[key] = list(way.ends.values())
    return _ends[key]


def at(line: str) -> str:
    return os.path.basename(line)


def _name(func) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _callees_of(source) -> Callees:
    if source.file not in _known_callees:
        _known_callees[source.file] = Callees(source)
    return _known_callees[source.file]


class _Following:
    def __init__(self, file: str):
        self.source = source_of(file)
        self.tree, self.parents = (self.source.tree, self.source.parents) if self.source else (None, {})
        self.seen: set = set()
        self.ends: dict = {}  # of loops, by their statement
        self.part = None  # of the last `and` on the way
        self.callees = _callees_of(self.source) if self.source else None

    def judge(self, line: int, kind: str) -> str | None:
        if self.source is None:
            return SIZE if kind == _WHOLE else None
        statement = self.statement(line)
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
        return next((what for what in (SIZE, BRANCH, PERHAPS, GIVEN) if what in results), None)

    def statement(self, line: int):
        """The innermost one; of `if …: break` on one line the first, which computes something."""
        inner = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno):
                is_under = inner is not None and node.lineno == inner.lineno and isinstance(inner, (ast.If, ast.While))
                if inner is None or node.lineno >= inner.lineno and not (is_under and calls(inner.test)):
                    inner = node
        return inner

    def _note_end(self, node) -> None:
        """Does the condition end a loop, or a function before what it does?"""
        scope = self._scope(node)
        name = getattr(scope, "name", "<module>")
        around = self.parents.get(node)
        while around is not None and around is not scope and not isinstance(around, _LOOPS):
            around = self.parents.get(around)
        in_loop = isinstance(around, _LOOPS)
        if isinstance(node, ast.While):
            self.ends.setdefault(node, End(node, node, name, decided=self.part))
            return
        under = [n for branch in (*node.body, *node.orelse) for n in _of_this_loop(branch)]
        if in_loop and any(isinstance(n, (ast.Break, ast.Return)) for n in under):
            self.ends.setdefault(node, End(node, around, name))
        elif any(isinstance(n, ast.Return) for n in under) and around is scope and node in getattr(scope, "body", ()):
            if self._weight(scope.body[scope.body.index(node) + 1 :]) == _HEAVY:
                self.ends.setdefault(node, End(node, scope, name))
        for one in under:
            if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant) and type(one.value.value) is bool:
                for target in one.targets:
                    if isinstance(target, ast.Name) and self._is_mark(target.id, scope):
                        self.ends.setdefault(node, End(node, around, name, (target.id, one.value.value)))

    def _note_ends_by_counters(self, node) -> None:
        """Rounds without progress are counted under the condition, and a loop ends by the counter, or by a mark or an answer (early stopping)."""
        for one in (n for branch in (*node.body, *node.orelse) for n in _of_this_loop(branch)):
            if isinstance(one, ast.AugAssign):
                self._uses(one.target, _COUNTED)
            elif isinstance(one, ast.Assign) and isinstance(one.value, (ast.Constant, ast.BinOp)):
                for target in one.targets:
                    if isinstance(one.value, ast.BinOp) or type(one.value.value) is bool:
                        self._uses(target, _COUNTED)
            elif isinstance(one, ast.Return) and isinstance(one.value, ast.Constant) and one.value.value is True:
                self._callers(one, _COUNTED)

    def _is_mark(self, name: str, scope) -> bool:
        """By which a loop ends."""
        return any(
            isinstance(node, (ast.While, ast.If))
            and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node.test))
            and (isinstance(node, ast.While) or any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(node)))
            for node in ast.walk(scope or self.tree)
        )

    def _condition(self, node, level: str = _TRUTH) -> str | None:
        self._note_end(node)
        if isinstance(node, ast.If):
            self._note_ends_by_counters(node)
        if level == _COUNTED:
            return None
        if isinstance(node, ast.While):
            return None  # how often it goes round: see loop_ends.py
        weight = self._weight(node.body + node.orelse)
        if weight != _HEAVY:
            return self._numbers_set(node.body + node.orelse) or (PERHAPS if weight == _UNSEEN else None)
        if level != _COMPARED or self._takes(node.body + node.orelse, set()):
            return BRANCH
        return self._numbers_set(node.body + node.orelse) or PERHAPS

    def _weight(self, statements, inside: tuple = ()) -> int:
        """Whether the statements take memory of the GPU that would not be taken otherwise."""
        most = _LIGHT
        for statement in statements:
            if isinstance(statement, (ast.Raise, ast.Break, ast.Continue, ast.Pass)):
                continue
            if not isinstance(statement, (ast.If, ast.Return, ast.Expr, ast.Assign, ast.AugAssign, ast.Assert)):
                return _HEAVY
            if isinstance(statement, ast.If):
                most = max(most, self._weight(statement.body + statement.orelse, inside))
            parts = [statement.test] if isinstance(statement, ast.If) else [statement]
            calls = (node for part in parts for node in ast.walk(part) if isinstance(node, ast.Call))
            most = max([most, *(self._weight_of_call(call, inside) for call in calls)])
        return most

    def _weight_of_call(self, call, inside: tuple) -> int:
        name, callee = _name(call.func), self.callees.of(call)
        if callee in (OWN, PERHAPS_OWN) and name in _MOSTLY_TELL | _NO_MEMORY:
            if name in inside:
                return _LIGHT
            bodies = [one.body for one in self.source.functions.get(name, ())]
            least = _LIGHT if callee == OWN else _UNSEEN
            return max([least, *(self._weight(body, (*inside, name)) for body in bodies)]) if bodies else _HEAVY
        if callee in (TELLS, KEEPS) or name in _NO_MEMORY:
            return _LIGHT
        return _UNSEEN if name in _MOSTLY_TELL else _HEAVY

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
        before = None
        while (node, level) not in self.seen:
            self.seen.add((node, level))
            inner, before, node = before, node, self.parents.get(node)
            if node is None or isinstance(node, (ast.JoinedStr, ast.FormattedValue, ast.Expr, ast.Assert, ast.Raise)):
                return None
            if level == _COUNTED and isinstance(node, (ast.BinOp, ast.Slice, ast.For, ast.AsyncFor, ast.comprehension)):
                return None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
                level = _FRACTION
            elif isinstance(node, ast.BoolOp):
                self.part = before
            elif isinstance(node, ast.Compare) and level != _COUNTED:
                level = _COMPARED if level in (_FRACTION, _COMPARED, _KEPT) else _TRUTH
            elif isinstance(node, (ast.If, ast.While, ast.IfExp)) and before is node.test:
                if level in (_FRACTION, _KEPT):
                    return None
                if not isinstance(node, ast.IfExp):
                    return self._condition(node, level)
                if level == _COUNTED:
                    return None
                if level == _TRUTH or self._takes([node.body, node.orelse], set()):
                    return BRANCH
                if not (_is_number(node.body) and _is_number(node.orelse)):
                    return None
                level = _WHOLE
            elif isinstance(node, ast.Call):
                name = _name(node.func)
                if name in _ROUNDS and level != _COUNTED:
                    level = _WHOLE
                elif name == "float" and level in (_WHOLE, _KEPT):
                    level = _FRACTION
                elif level == _KEPT and name in _OF_A_CONTAINER:
                    level = _WHOLE
                elif before is not node.func and name not in _KEEPS:
                    return self._given(node, before, level)
            elif isinstance(node, ast.Subscript):
                if before is not node.value:
                    return None  # one element
                level = _WHOLE if level == _KEPT else level
            elif isinstance(node, ast.Slice):
                return SIZE if level == _WHOLE else None
            elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if isinstance(before, ast.Tuple):  # a, b = x, y
                    targets = [_same_place(target, before, inner) for target in targets]
                result = self._first(self._uses(target, level) for target in targets)
                if result or not isinstance(node, ast.NamedExpr):
                    return result
            elif isinstance(node, (ast.Return, ast.Yield)):
                return self._callers(node, level)
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
                return self._uses(node.target, _WHOLE if level == _KEPT else level)
            elif isinstance(node, ast.stmt):
                return None
        return None

    def _given(self, call, argument, level: str) -> str | None:
        """A function is given the number."""
        inside = self._follow_into(call, argument, level)
        self._climb(call, _COUNTED)  # its answer may end a loop
        if level not in (_WHOLE, _KEPT):
            return None
        name, callee = _name(call.func), self.callees.of(call)
        if callee == KEEPS:
            kept = call.func.value
            while isinstance(kept, ast.Subscript):
                kept = kept.value
            return self._uses(kept, _KEPT)
        if callee == TELLS:
            return None
        if callee == OWN and name in _MOSTLY_TELL:
            return inside
        if callee == PERHAPS_OWN and name in _MOSTLY_TELL:
            return self._first([inside, GIVEN])
        return GIVEN if level == _KEPT or name in _MOSTLY_TELL else SIZE

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

    def _follow_into(self, call, argument, level: str) -> str | None:
        """Into a function of the same file that is given the number: what that decides, and the loops that end by it: stopper.step(loss), stopper(loss)."""
        name, found = _name(call.func), set()
        word = argument.arg if isinstance(argument, ast.keyword) else None
        if word is None and argument not in call.args:
            return SIZE
        place = 0 if word is not None else call.args.index(argument)
        inside = level if level in (_COUNTED, _WHOLE, _KEPT) else _FRACTION
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.FunctionDef) or node.name not in (name, "__call__"):
                continue
            is_method = isinstance(self.parents.get(node), ast.ClassDef)
            names = [one.arg for one in node.args.posonlyargs + node.args.args][1 if is_method else 0 :]
            if word is None and place >= len(names):
                found.add(SIZE)  # among those that it takes as *arguments
                continue
            for use in ast.walk(node):
                if isinstance(use, ast.Name) and use.id == (word or names[place]) and isinstance(use.ctx, ast.Load):
                    found.add(self._climb(use, inside))
        return self._first(found)

    def _callers(self, node, level: str) -> str | None:
        function = getattr(self._scope(node), "name", None)
        calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call) and function and _name(n.func) == function]
        return self._first(self._climb(call, level) for call in calls)


def _of_this_loop(node):
    """It and what is in it, but for what belongs to loops and functions inside."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _of_this_loop(child)


def _same_place(target, given: ast.Tuple, part):
    is_alike = isinstance(target, ast.Tuple) and len(target.elts) == len(given.elts)
    return target.elts[given.elts.index(part)] if is_alike and part in given.elts else target


def _is_number(value) -> bool:
    return isinstance(value, ast.Constant) and type(value.value) is int


def _heads(statement) -> list:
    """What a statement computes itself, without the statements in it."""
    return [
        child
        for child in ast.iter_child_nodes(statement)
        if not isinstance(child, (ast.stmt, ast.ExceptHandler)) and not isinstance(child, ast.arguments)
    ]
