"""Numbers that the program reads from arrays."""

from __future__ import annotations

from .. import stand_in_reads

_METHODS = ("__bool__", "__float__", "__int__", "__complex__", "__index__", "item", "tolist", "__array__")


def install(session) -> None:
    from jax._src import array

    kind = array.ArrayImpl
    stand_in_reads.note_reads(session, kind, _METHODS, session.arrays.is_stand_in)
    inner = kind._value

    def value(self):
        if not stand_in_reads.is_reading() and session.arrays.is_stand_in(self):
            stand_in_reads.note(session)
        return inner.__get__(self)

    kind._value = property(value)
