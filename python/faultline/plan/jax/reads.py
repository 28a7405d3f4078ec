"""Numbers that the program reads from arrays."""

from __future__ import annotations

import functools

import numpy as np

from ..session import stand_in_reads

_METHODS = ("__bool__", "__float__", "__int__", "__complex__", "__index__", "item", "tolist", "__array__")


def install(session) -> None:
    from jax._src import array

    kind = array.ArrayImpl
    stand_in_reads.note_reads(session, kind, _METHODS, session.arrays.is_stand_in)
    inner = kind._value

    def value(self):
        session.remedies.read(self)
        if not stand_in_reads.is_reading() and session.arrays.is_stand_in(self):
            stand_in_reads.note(session)
        return inner.__get__(self)

    kind._value = property(value)
    # NumPy looks into an array of the CPU's without asking it.
    for name in ("asarray", "array"):
        setattr(np, name, _noting(session, kind, getattr(np, name)))


def _noting(session, kind, function):
    @functools.wraps(function)
    def read(*arguments, **named):
        if arguments and type(arguments[0]) is kind and not session.closed and not session.executions.inside:
            session.remedies.read(arguments[0])
            if not stand_in_reads.is_reading() and session.arrays.is_stand_in(arguments[0]):
                stand_in_reads.note(session)
        return function(*arguments, **named)

    return read
