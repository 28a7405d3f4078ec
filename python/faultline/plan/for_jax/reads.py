"""Numbers that the program reads from arrays. Where they were not computed, the program reads zeros, and the plan notes it."""

from __future__ import annotations

import threading

from .. import decisions
from ..stacks import user_line

_TEXT = "a value of the GPU is read that a dry run does not compute: it reads as 0 (--real computes it)"
_here = threading.local()


def install(session) -> None:
    from jax._src import array

    kind = array.ArrayImpl

    def noted(name: str) -> None:
        function = getattr(kind, name, None)
        if function is None:
            return

        def read(self, *arguments, **named):
            if getattr(_here, "reading", False) or not session.arrays.is_stand_in(self):
                return function(self, *arguments, **named)
            _here.reading = True
            try:
                value = function(self, *arguments, **named)
            finally:
                _here.reading = False
            session.notes.stand_in(_TEXT)
            if name == "__index__":  # of an array it is a size, or a place
                line = user_line()
                session.notes.add(
                    "value",
                    "sizes may come from a number that a dry run does not compute: the stand-in may be less than it is (--real computes it)",
                    line,
                    verdict=f"with sizes from a number that is not computed ({decisions.at(line)})",
                )
            else:
                session.notes.may_decide(decisions.of_read(value), False, session.operations)
            return value

        setattr(kind, name, read)

    for name in ("__bool__", "__float__", "__int__", "__complex__", "__index__", "item", "tolist", "__array__"):
        noted(name)
    inner = kind._value

    def value(self):
        if not getattr(_here, "reading", False) and session.arrays.is_stand_in(self):
            session.notes.stand_in(_TEXT)
        return inner.__get__(self)

    kind._value = property(value)
