"""The part of TensorIterator that decides how a reduction is laid out: dimension order, coalescing, 32-bit splitting.

The launch shape of a reduction, and with it the size of its staging buffer, depends on the order in which the iterator
sorts and merges the dimensions, so the same steps are taken here on plain numbers. Strides are in bytes; a reduced
dimension has stride 0 in the result and stands first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

MAX32 = 2**31 - 1


@dataclass
class ReduceIterator:
    shape: list[int]
    out_strides: list[int]
    in_strides: list[int]
    offset: int  # of the input, in bytes from the start of its block

    @property
    def numel(self) -> int:
        return prod(self.shape)

    @property
    def num_outputs(self) -> int:
        return prod(size for size, stride in zip(self.shape, self.out_strides) if stride != 0 or size == 0)

    @property
    def num_reduce_dims(self) -> int:
        return sum(1 for size, stride in zip(self.shape, self.out_strides) if stride == 0 and size > 1)

    def fits_32_bits(self) -> bool:
        if self.numel > MAX32:
            return False
        for strides in (self.out_strides, self.in_strides):
            if 1 + sum((size - 1) * stride for size, stride in zip(self.shape, strides)) > MAX32:
                return False
        return True

    def split(self) -> tuple["ReduceIterator", "ReduceIterator"]:
        """Halves the dimension that spans most bytes."""

        def extent(d: int) -> int:
            return max((self.shape[d] - 1) * self.out_strides[d], (self.shape[d] - 1) * self.in_strides[d])

        best, span = -1, -1
        for d in range(len(self.shape) - 1, -1, -1):
            if self.shape[d] > 1 and extent(d) > span:
                best, span = d, extent(d)
        half = self.shape[best] // 2
        return self._narrow(best, 0, half), self._narrow(best, half, self.shape[best] - half)

    def _narrow(self, dim: int, start: int, size: int) -> "ReduceIterator":
        shape = list(self.shape)
        shape[dim] = size
        part = ReduceIterator(
            shape, list(self.out_strides), list(self.in_strides), self.offset + start * self.in_strides[dim]
        )
        if size == 1:
            part.coalesce()
        return part

    def sort(self) -> None:
        """Reduced dimensions first, then by stride, as an insertion sort with undecided pairs."""
        n = len(self.shape)
        order = list(range(n - 1, -1, -1))
        for i in range(1, n):
            late = i
            for early in range(i - 1, -1, -1):
                verdict = self._should_swap(order[early], order[late])
                if verdict > 0:
                    order[early], order[late] = order[late], order[early]
                    late = early
                elif verdict < 0:
                    break
        self.shape = [self.shape[d] for d in order]
        self.out_strides = [self.out_strides[d] for d in order]
        self.in_strides = [self.in_strides[d] for d in order]

    def _should_swap(self, a: int, b: int) -> int:
        for strides, is_output in ((self.out_strides, True), (self.in_strides, False)):
            first, second = strides[a], strides[b]
            if is_output and (first == 0) != (second == 0):
                return 1 if second == 0 else -1
            if first == 0 or second == 0:
                continue
            if first < second:
                return -1
            if first > second:
                return 1
            if self.shape[a] > self.shape[b]:
                return 1
        return 0

    def coalesce(self) -> None:
        if len(self.shape) <= 1:
            return
        kept = 0
        for d in range(1, len(self.shape)):
            if self._mergeable(kept, d):
                if self.shape[kept] == 1:
                    self.out_strides[kept], self.in_strides[kept] = self.out_strides[d], self.in_strides[d]
                self.shape[kept] *= self.shape[d]
            else:
                kept += 1
                if kept != d:
                    self.shape[kept] = self.shape[d]
                    self.out_strides[kept], self.in_strides[kept] = self.out_strides[d], self.in_strides[d]
        del self.shape[kept + 1 :], self.out_strides[kept + 1 :], self.in_strides[kept + 1 :]

    def _mergeable(self, a: int, b: int) -> bool:
        if self.shape[a] == 1 or self.shape[b] == 1:
            return True
        return all(self.shape[a] * strides[a] == strides[b] for strides in (self.out_strides, self.in_strides))


def reduce_iterator(
    shape: list[int],
    strides: list[int],
    offset: int,
    itemsize: int,
    reduced: set[int],
    out_strides: list[int],
    out_itemsize: int,
) -> ReduceIterator:
    """strides, offset: of the input in elements. out_strides: of the result without the reduced dimensions, in elements."""
    kept = iter(out_strides)
    out = [0 if d in reduced else next(kept) * out_itemsize for d in range(len(shape))]
    it = ReduceIterator(list(shape), out, [s * itemsize for s in strides], offset * itemsize)
    if len(it.shape) > 1:
        it.sort()
    it.coalesce()
    return it
