"""Numbers that a program reads from the arrays of a pool's dry run. Where they were not computed it reads zeros, and the plan notes it."""

from __future__ import annotations

import threading

from ...common.stacks import user_line
from ..source import decisions

_TEXT = "a value of the GPU is read that a dry run does not compute: it reads as 0 (--real computes it)"
_SIZES = "sizes may come from a number that a dry run does not compute: the stand-in may be less than it is (--real computes it)"
_here = threading.local()


def is_reading() -> bool:
    return getattr(_here, "reading", False)


def note(session) -> None:
    session.notes.stand_in(_TEXT)


def note_reads(session, kind: type, names: tuple, is_stand_in) -> None:
    """Of these methods of the array's type."""
    for name in names:
        if getattr(kind, name, None) is not None:
            setattr(kind, name, _noting(session, name, getattr(kind, name), is_stand_in))


def _noting(session, name: str, function, is_stand_in):
    def read(self, *arguments, **named):
        if is_reading() or not is_stand_in(self):
            return function(self, *arguments, **named)
        _here.reading = True
        try:
            value = function(self, *arguments, **named)
        finally:
            _here.reading = False
        note(session)
        if name == "__index__":  # of an array it is a size, or a place
            line = user_line()
            words = f"with sizes from a number that is not computed ({decisions.at(line)})"
            session.notes.add("value", _SIZES, line, verdict=words)
        else:
            session.notes.may_decide(decisions.of_read(value), False, session.operations)
        return value

    return read
