"""Which allocation of the GPU an array (or a tensor) has, and whether its numbers were computed.

An array can share its memory with others (device_put to where it is, a donated argument and the result in its place): the allocation ends with the last of them.
"""

from __future__ import annotations

import mmap
import weakref

import numpy as np

_NO_RESERVE = 0x4000  # of mmap: addresses, not memory
_PAGE = 4096


class Holding:
    """An allocation, or none (0: of no bytes, or not on the GPU), and how many arrays have it."""

    __slots__ = ("allocation", "arrays", "bytes", "is_loose")

    def __init__(self, allocation: int, is_loose: bool = False):
        self.allocation, self.arrays, self.bytes = allocation, 0, 0
        self.is_loose = is_loose  # it was counted as large as it can be, and may be smaller

    def let_go(self, session) -> None:
        """One array fewer has it."""
        self.arrays -= 1
        if self.arrays == 0:
            session.give_back(self.allocation)
            self.allocation = 0


class _Followed(weakref.ref):
    __slots__ = ("key", "holding", "is_stand_in", "is_uniform", "ended")

    def __new__(cls, array, died, key, holding, is_stand_in, is_uniform):
        return super().__new__(cls, array, died)

    def __init__(self, array, died, key, holding, is_stand_in, is_uniform):
        super().__init__(array, died)
        self.key, self.holding, self.is_stand_in, self.ended = key, holding, is_stand_in, False
        self.is_uniform = is_uniform  # the same value everywhere, computed or not


class Holdings:
    def __init__(self, session):
        self._session = session
        self._followed: dict[int, _Followed] = {}  # by the array's id

    def follow(self, array, holding: Holding, is_stand_in: bool = False, is_uniform: bool = False) -> None:
        known = self.of(array)
        if known is not None:
            return
        holding.arrays += 1
        key = id(array)
        self._followed[key] = _Followed(array, self._died, key, holding, is_stand_in, is_uniform)

    def of(self, array) -> _Followed | None:
        known = self._followed.get(id(array))
        return known if known is not None and known() is array else None

    def alive(self) -> list[tuple[_Followed, object]]:
        """What is followed and lives."""
        found = ((followed, followed()) for followed in list(self._followed.values()) if not followed.ended)
        return [(followed, array) for followed, array in found if array is not None]

    def is_stand_in(self, array) -> bool:
        known = self.of(array)
        return known is not None and known.is_stand_in

    def end(self, array) -> None:
        """It was deleted, or given away: its Python object may live on."""
        known = self.of(array)
        if known is not None:
            self._end(known)

    def _died(self, followed: _Followed) -> None:
        if self._followed.get(followed.key) is followed:
            del self._followed[followed.key]
        self._end(followed)

    def _end(self, followed: _Followed) -> None:
        if followed.ended:
            return
        followed.ended = True
        followed.holding.let_go(self._session)


def zeros(shape: tuple, dtype) -> np.ndarray:
    """An array of the host whose memory nobody has touched: it costs addresses alone."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    size = count * dtype.itemsize
    if size <= _PAGE:
        return np.zeros(shape, dtype)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
    return np.frombuffer(memory, dtype, count).reshape(shape)
