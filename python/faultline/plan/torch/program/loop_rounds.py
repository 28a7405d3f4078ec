"""How many optimizer steps the program's own loop makes, where its source says how many rounds it has: range(…), a DataLoader, a list that is counted. What grows with
every step fills the GPU only if there are that many. `while step < steps` is known, too, where nothing but `step += 1` changes the step."""

from __future__ import annotations

import ast
import itertools
import math
import os
import sys
import types
from typing import NamedTuple

import torch
import torch.utils.data

from ...._file_owner import is_library, is_own
from .alike import _function_of, _holds, _name_of, _number, _within
from .program_names import _variables

_TORCH = os.path.join(os.path.dirname(torch.__file__), "")
_LOOPS = (ast.For, ast.While, ast.AsyncFor, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_AROUND = ("tqdm", "track", "reversed")  # give what they are given


class LoopRounds:
    def __init__(self, session):
        self._beyond = session.beyond
        self._seen: list[tuple[int, int, int]] = []  # after so many steps: the rounds begun, the rounds there are
        self._where = ""
        self._stopped_in = None
        self._loops: dict = {}  # by code
        self._first: dict = {}  # by a while loop: its counter when it was first seen

    def ended(self, steps: int) -> None:
        """A step is over. It is looked after 1, 2, 4, 8, … of them."""
        if steps & (steps - 1) or self._beyond.on:
            return
        try:
            found = self._position(sys._getframe(1))
        except Exception:  # of ours, or of a source that is not there: the number is not known
            found = None
        if found is None:
            self._seen.clear()
        else:
            self._where, begun, rounds = found
            self._seen.append((steps, begun, rounds))

    def summary(self) -> dict | None:
        """None: how many steps there are is not known."""
        if not self._seen:
            return self._stopped_in
        steps, begun, rounds = self._seen[-1]
        earlier = [one for one in self._seen[:-1] if one[1] < begun and one[2] == rounds]
        then = earlier[-1] if earlier else (0, 0, rounds)
        each = (steps - then[0]) / (begun - then[1])
        return {"where": self._where, "rounds": rounds, "steps": steps + math.ceil((rounds - begun) * each)}

    def stopped(self) -> None:
        """A program that makes no steps is stopped: in which round, where there is one loop alone around it."""
        try:
            found = self._position(sys._getframe(1), most_loops=1)
        except Exception:  # as above
            return
        if found is not None:
            where, begun, rounds = found
            self._stopped_in = {"where": where, "rounds": rounds, "steps": 0, "begun": begun}

    def _position(self, frame, most_loops: int | None = None):
        """Of all loops around what runs now: the innermost one's place, rounds begun, rounds in all. PyTorch's own loops are inside a step."""
        at, loops = _Position(), 0
        while frame is not None:
            name = frame.f_code.co_filename
            if not is_own(name) and not name.startswith((_TORCH, "<frozen")):
                if name.startswith("<") or frame.f_code.co_name in ("<listcomp>", "<genexpr>", "<setcomp>"):
                    return None
                inside: list = []  # loops of this function, inside the one that is looked at
                for loop in reversed(self._loops_of(frame.f_code)):
                    if not _holds(loop, frame.f_lineno):
                        continue
                    loops += 1
                    if is_library(name) or most_loops is not None and loops > most_loops:
                        return None
                    where = f"{name.removeprefix(os.path.join(os.getcwd(), ''))}:{loop.lineno}"
                    counter = _Counter.of(loop)
                    if counter is not None and most_loops is not None:
                        return None  # it was not seen at its beginning
                    if counter is None:
                        at.goes_around(where, self._rounds(loop, frame))
                    elif inside and counter.is_counted_in(inside[0]):  # whatever the loops inside it are
                        at.is_in(where, self._counted(counter, frame))
                    else:
                        is_own_count = not any(counter.is_counted_in(one) for one in inside)
                        at.goes_around(where, self._counted(counter, frame) if is_own_count else None)
                    inside.append(loop)
                if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
                    break  # what started the program is no part of it
            frame = frame.f_back
        return at.found()

    def _loops_of(self, code) -> list:
        """Outer ones first."""
        known = self._loops.get(code)
        if known is None:
            known = self._loops[code] = [node for node in _within(_function_of(code)) if isinstance(node, _LOOPS)]
        return known

    def _counted(self, counter: _Counter, frame) -> tuple[int, int] | None:
        """Of a loop that a counter ends: rounds begun since it was first seen, rounds from there on."""
        there = types.SimpleNamespace(f_locals=dict(_variables(frame)), f_globals=frame.f_globals)
        now, limit = _number(counter.counter, there), _number_or_length(counter.limit, there)
        if type(now) is not int or type(limit) is not int:
            return None
        first = self._first.setdefault(counter.loop, now)
        if now < first:  # it has begun anew
            first = self._first[counter.loop] = now
        rounds = -((first - limit - counter.is_reached) // counter.step)
        return _within_rounds((now - first) // counter.step + 1, rounds)

    def _rounds(self, loop, frame) -> tuple[int, int] | None:
        """Of one loop: rounds begun, rounds in all."""
        if not isinstance(loop, ast.For):
            return None
        variables = dict(_variables(frame))
        there = types.SimpleNamespace(f_locals=variables, f_globals=frame.f_globals)
        made, target, counted = loop.iter, loop.target, None
        body = {node.id for one in loop.body for node in ast.walk(one) if _is_written(node)}
        while isinstance(made, ast.Call) and made.args and _name_of(made) in (*_AROUND, "enumerate"):
            if _name_of(made) == "enumerate":
                start = made.args[1:] or [word.value for word in made.keywords if word.arg == "start"]
                first = _number(start[0], there) if start else 0
                if counted is not None or not isinstance(target, ast.Tuple) or type(first) is not int:
                    return None
                counted = (target.elts[0], first)
                target = target.elts[1]
            made = made.args[0]
        if {node.id for node in ast.walk(made) if isinstance(node, ast.Name)} & body:
            return None
        if counted is not None and (not isinstance(counted[0], ast.Name) or counted[0].id in body):
            return None
        rounds = _length(made, there)
        if rounds is None or rounds == math.inf:
            return None
        if counted is not None:
            now = _number(counted[0], there)
            return _within_rounds(now - counted[1] + 1, rounds) if type(now) is int else None
        span = _span(made, there)
        if span is not None:
            now = _number(target, there) if isinstance(target, ast.Name) and target.id not in body else None
            return (span.index(now) + 1, len(span)) if type(now) is int and now in span else None
        for loader in _loaders(made, there):
            giving = self._beyond.giving(loader)
            if giving is not None:
                return _within_rounds(giving.given, rounds)
        return None


class _Position:
    """Where a program is in its loops, from the innermost one to the outermost."""

    def __init__(self):
        self.where, self._begun, self._rounds, self._is_known = "", 0, 1, True

    def goes_around(self, where: str, one: tuple[int, int] | None) -> None:
        if one is None:
            self._is_known = False
        elif self._is_known:
            self._begun = (one[0] - 1) * self._rounds + (self._begun if self.where else 1)
            self._rounds *= one[1]
        self.where = self.where or where

    def is_in(self, where: str, one: tuple[int, int] | None) -> None:
        """In a loop whose rounds are counted by the loops inside it."""
        self._is_known = one is not None
        if one is not None:
            self.where, (self._begun, self._rounds) = where, one

    def found(self) -> tuple[str, int, int] | None:
        return (self.where, self._begun, self._rounds) if self.where and self._is_known else None


class _Counter(NamedTuple):
    """while step < steps: …, where nothing but `step += 1` changes the step."""

    loop: ast.While
    counter: ast.Name | ast.Attribute
    limit: ast.expr
    is_reached: bool  # <=
    step: int
    counted: ast.AugAssign

    @staticmethod
    def of(loop) -> _Counter | None:
        if not isinstance(loop, ast.While) or not isinstance(loop.test, ast.Compare):
            return None
        counter, ends, limit = loop.test.left, loop.test.ops[0], loop.test.comparators[0]
        if not isinstance(counter, (ast.Name, ast.Attribute)) or not isinstance(ends, (ast.Lt, ast.LtE)):
            return None
        name, body = ast.unparse(counter), [node for one in loop.body for node in (one, *_within(one))]
        writes = [node for node in body if _is_stored(node) and ast.unparse(node) == name]
        counts = [node for node in body if isinstance(node, ast.AugAssign) and node.target in writes]
        read = {node.id for node in ast.walk(limit) if isinstance(node, ast.Name)}
        if len(loop.test.ops) > 1 or len(writes) != 1 or len(counts) != 1:
            return None
        if any(_is_written(node) and node.id in read for node in body):
            return None
        step = counts[0].value.value if isinstance(counts[0].value, ast.Constant) else None
        if type(step) is not int or step < 1 or not isinstance(counts[0].op, ast.Add):
            return None
        return _Counter(loop, counter, limit, isinstance(ends, ast.LtE), step, counts[0])

    def is_counted_in(self, loop) -> bool:
        return _holds(loop, self.counted.lineno)


def _length(made, there) -> float | None:
    """How many rounds a loop over it has: inf without an end, None where that is not known."""
    if isinstance(made, ast.Call):
        span = _span(made, there)
        if span is not None:
            return len(span)
        name, given = _name_of(made), made.args
        if name in (*_AROUND, "enumerate") and given:
            return _length(given[0], there)
        if name == "zip" and given:
            lengths = [_length(argument, there) for argument in given]
            return None if None in lengths else min(lengths)
        if _number(made.func, there) in (itertools.cycle, itertools.count):
            return math.inf
        return None
    data = _number(made, there) if isinstance(made, (ast.Name, ast.Attribute)) else None
    if not isinstance(data, (list, tuple, dict, range, torch.utils.data.DataLoader)):
        return None
    try:
        return len(data)
    except (TypeError, NotImplementedError):  # an iterable dataset without a length
        return None


def _span(made, there) -> range | None:
    """Of range(…) and trange(…) with numbers that are known."""
    if not isinstance(made, ast.Call) or _name_of(made) not in ("range", "trange") or not 1 <= len(made.args) <= 3:
        return None
    numbers = [_number_or_length(argument, there) for argument in made.args]
    return range(*numbers) if all(type(number) is int for number in numbers) else None


def _loaders(made, there):
    """What a loop over it takes one batch of in each round."""
    if isinstance(made, ast.Call) and _name_of(made) in ("zip", *_AROUND, "enumerate"):
        for argument in made.args:
            yield from _loaders(argument, there)
    elif isinstance(made, (ast.Name, ast.Attribute)):
        data = _number(made, there)
        if isinstance(data, torch.utils.data.DataLoader):
            yield data


def _within_rounds(begun: int, rounds: int) -> tuple[int, int] | None:
    return (begun, rounds) if 1 <= begun <= rounds else None


def _is_written(node) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def _is_stored(node) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load)


def _number_or_length(node, there):
    if isinstance(node, ast.Call) and _name_of(node) == "len" and len(node.args) == 1:
        data = _number(node.args[0], there)
        return len(data) if isinstance(data, (list, tuple, dict, range, torch.utils.data.DataLoader)) else None
    return _number(node, there)
