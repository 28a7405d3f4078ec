"""How many optimizer steps the program's own loop makes, where its source says how many rounds it has: range(…), a DataLoader, a list that is counted. What grows with
every step fills the GPU only if there are that many."""

from __future__ import annotations

import ast
import math
import os
import sys
import types

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
        where, begun, rounds, loops = "", 0, 1, 0
        while frame is not None:
            name = frame.f_code.co_filename
            if not is_own(name) and not name.startswith((_TORCH, "<frozen")):
                if name.startswith("<") or frame.f_code.co_name in ("<listcomp>", "<genexpr>", "<setcomp>"):
                    return None
                for loop in reversed(self._loops_of(frame.f_code)):
                    if not _holds(loop, frame.f_lineno):
                        continue
                    loops += 1
                    if most_loops is not None and loops > most_loops:
                        return None
                    if is_library(name) or (one := self._rounds(loop, frame)) is None:
                        return None
                    begun, rounds = (one[0] - 1) * rounds + (begun if where else 1), rounds * one[1]
                    where = where or f"{name.removeprefix(os.path.join(os.getcwd(), ''))}:{loop.lineno}"
                if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "__main__":
                    break  # what started the program is no part of it
            frame = frame.f_back
        return (where, begun, rounds) if where else None

    def _loops_of(self, code) -> list:
        """Outer ones first."""
        known = self._loops.get(code)
        if known is None:
            known = self._loops[code] = [node for node in _within(_function_of(code)) if isinstance(node, _LOOPS)]
        return known

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
        now = _number(counted[0], there) if counted is not None else None
        if isinstance(made, ast.Call) and _name_of(made) in ("range", "trange") and 1 <= len(made.args) <= 3:
            span = [_number_or_length(argument, there) for argument in made.args]
            if any(type(number) is not int for number in span):
                return None
            span = range(*span)
            if counted is not None:
                return _within_rounds(now - counted[1] + 1, len(span)) if type(now) is int else None
            now = _number(target, there) if isinstance(target, ast.Name) and target.id not in body else None
            return (span.index(now) + 1, len(span)) if type(now) is int and now in span else None
        data = _number(made, there) if isinstance(made, (ast.Name, ast.Attribute)) else None
        if not isinstance(data, (list, tuple, dict, range, torch.utils.data.DataLoader)):
            return None
        if type(now) is int:
            return _within_rounds(now - counted[1] + 1, len(data))
        giving = self._beyond.last() if self._beyond.last is not None else None
        if isinstance(data, torch.utils.data.DataLoader) and giving is not None and giving.of is data:
            return _within_rounds(giving.given, len(data))
        return None


def _within_rounds(begun: int, rounds: int) -> tuple[int, int] | None:
    return (begun, rounds) if 1 <= begun <= rounds else None


def _is_written(node) -> bool:
    return isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)


def _number_or_length(node, there):
    if isinstance(node, ast.Call) and _name_of(node) == "len" and len(node.args) == 1:
        data = _number(node.args[0], there)
        return len(data) if isinstance(data, (list, tuple, dict, range, torch.utils.data.DataLoader)) else None
    return _number(node, there)
