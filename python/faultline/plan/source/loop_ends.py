"""Loops that go round as often as a value says which a dry run does not compute: `if token == eos: break`, `while error > limit`.

Which statements a number that is read may decide is known from the source (decisions.py). Whether the loop then goes on is seen: the program's own function is traced from the read to the
first line behind that statement. A loop that goes on runs to its other limit, which is the most there can be; one that ends there, or that has no other limit, is said with the verdict.
"""

from __future__ import annotations

import sys

from . import decisions
from .reader import calling_frame

_FEW = 3  # rounds
_MOST_EVENTS = 20_000  # calls, until a statement that was not reached is given up


class _Watched:
    """A statement that is about to be decided in a frame."""

    def __init__(self, file: str, end: decisions.End, is_here: bool):
        self.file, self.end, self.entered = file, end, is_here


class LoopEnds:
    def __init__(self, notes, looks):
        self._notes, self._looks = notes, looks
        self._rounds: dict = {}  # how often a loop went on
        self._watched: dict = {}  # frame → what is watched in it
        self._events = 0

    def read(self) -> None:
        """A number or truth value that is not computed is read now."""
        frame = calling_frame()
        if frame is None:
            return
        file, line = frame.f_code.co_filename, frame.f_lineno
        for end in decisions.ends_after(file, line):
            if end.is_unlimited:
                self._tell(file, end)
                continue
            there = frame
            while there is not None and (there.f_code.co_filename != file or there.f_code.co_name != end.scope):
                there = there.f_back
            if there is not None and sys.gettrace() in (None, self._called):
                self._watch(there, _Watched(file, end, end.holds(there.f_lineno)))

    def _watch(self, frame, one: _Watched) -> None:
        watched = self._watched.setdefault(frame, [])
        if any(other.end is one.end for other in watched):
            return
        watched.append(one)
        self._events = 0
        frame.f_trace = self._happens
        sys.settrace(self._called)

    def _called(self, _frame, _event, _argument):
        self._events += 1
        if self._events > _MOST_EVENTS:
            self._give_up()

    def _happens(self, frame, event, _argument):
        if event in ("line", "return"):
            line = frame.f_lineno if event == "line" else 0
            taken = []
            for one in list(self._watched.get(frame, ())):
                if event == "line" and one.end.holds(line):
                    one.entered = True
                elif one.entered or event == "return":
                    self._watched[frame].remove(one)
                    if one.entered and one.end.is_taken(line, frame):
                        taken.append(one)
                    elif one.entered:
                        self._goes_on(one.file, one.end)
            rounds = 1 + max((self._rounds.get(one.end, 0) for one in taken), default=0)
            for one in taken:  # of conditions in conditions the innermost is the one that ends it
                if not any(other is not one and one.end.has_inside(other.end) for other in taken):
                    self._tell(one.file, one.end, rounds)
            if not self._watched.get(frame):
                self._watched.pop(frame, None)
                frame.f_trace = None
        if not self._watched:
            sys.settrace(None)
            return None
        return self._happens

    def _give_up(self) -> None:
        for frame in self._watched:
            frame.f_trace = None
        self._watched.clear()
        sys.settrace(None)

    def _goes_on(self, file: str, end: decisions.End) -> None:
        """Sizes that are new after a few rounds come of how many there are."""
        self._rounds[end] = self._rounds.get(end, 0) + 1
        if self._rounds[end] == _FEW:
            self._notes.may_decide((decisions.SIZE, f"{file}:{end.statement.lineno}"), True, self._looks())

    def _tell(self, file: str, end: decisions.End, rounds: int = 0) -> None:
        line = f"{file}:{end.statement.lineno}"
        self._rounds.pop(end, None)
        after = f", after {rounds} round{'' if rounds == 1 else 's'}" if rounds else ""
        self._notes.add(
            "value",
            f"how often a loop goes round is decided here by a value that a dry run does not compute{after and after + ' of the dry run'}: it may be more, or less (--real computes it)",
            line,
            group="loop end",
            verdict=f"with a loop that a value ends which is not computed ({decisions.at(line)}{after})",
        )
