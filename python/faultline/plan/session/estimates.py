"""Sizes that are estimates: a number of bytes that is likely, and the two it lies between.

An Estimated is an int, the likely size, and may stand wherever a size does; Memory.take and PoolSession.take tell the trace of its ends. The plan then replays the same
requests with each at its least and each at its most, and what the program needs is an interval (src/plan/needs.h).
"""

from __future__ import annotations


OF_VALUES = "results whose size depends on values"


class Estimated(int):
    """likely bytes, between least and most; what: what is estimated, as a reader would call it ("cuDNN's workspaces")."""

    least: int
    most: int
    what: str

    def __new__(cls, likely: int, least: int, most: int, what: str):
        size = super().__new__(cls, likely)
        size.least, size.most, size.what = min(int(least), int(likely)), max(int(most), int(likely)), what
        return size

    @classmethod
    def at_ends(cls, likely: int, least: int, most: int, what: str):
        """One of several that depend on each other: its part of the least case, and of the largest, of which others may take what it does not."""
        size = cls(likely, 0, likely, what)
        size.least, size.most = int(least), int(most)
        return size

    @property
    def is_open(self) -> bool:
        return self.least != self.most


def size_from_values(most: int) -> Estimated:
    """Of a result that was counted as large as it can be."""
    return Estimated(most, 0, most, OF_VALUES)


def may_be_taken(size_bytes: int) -> bool:
    """Nothing is likely taken, but may be."""
    return size_bytes == 0 and isinstance(size_bytes, Estimated) and size_bytes.most > 0
