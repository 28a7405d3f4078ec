"""The cache of keys and values that a model keeps from call to call while it generates, told by how it is made.

Without gradients, and inside a model, it grows by torch.cat of what an earlier call of the model made with something new; or it is a list that gains some with each call and is joined anew; or it is made once, and calls write into parts of it.
"""

from __future__ import annotations

import os

import torch

from .memory import Memory, Record
from .naming import dtype_name

GROWS = torch.ops.aten.cat.default
COPIES = torch.ops.aten.copy_.default
WRITES = {
    COPIES,
    torch.ops.aten.index_put_.default,
    torch.ops.aten._index_put_impl_.default,
    torch.ops.aten.index_copy_.default,
    torch.ops.aten.scatter_.src,
}
KIND = "cache"  # of a note in the trace
_LEAST_DIMENSIONS = 3
_GAINED = 2  # by a list that is joined, with one call, at most


class KvCache:
    def __init__(self, memory: Memory, progress):
        self._memory, self._progress = memory, progress
        self._places: dict[int, str] = {}  # by stack
        self.found: dict[
            str, int
        ] = {}  # where it is made in 32 bits, each with the most bytes that were there at one time

    def _is_looked_at(self, tensor) -> bool:
        return (
            not torch.is_grad_enabled()
            and self._progress.depth > 0
            and tensor.dim() >= _LEAST_DIMENSIONS
            and tensor.dtype.is_floating_point
        )

    def grew(self, operands, fresh) -> None:
        """torch.cat has made one."""
        if len(fresh) != 1 or not operands or not self._is_looked_at(fresh[0]):
            return
        self._joined(operands)
        largest = max(operands, key=torch.Tensor.numel)
        record, before = self._memory.find(fresh[0]), self._memory.find(largest)
        if record is None or before is None:
            return
        record.made_in_call = call = self._progress.model_calls
        if before.made_in_call and before.made_in_call < call and fresh[0].numel() > largest.numel():
            self._is_one(record, fresh[0], "")

    def _joined(self, operands) -> None:
        """A list that gains one with each call and is joined anew in each: what was its last one is so no more. A token or a table that every call joins keeps its place."""
        call = self._progress.model_calls
        for operand in operands[-1 - _GAINED : -1]:
            record = self._memory.find(operand)
            if record is not None and 0 < record.last_of_call < call and not record.is_cache and record.allocation:
                self._note(record, operand)
        if (record := self._memory.find(operands[-1])) is not None:
            record.last_of_call = call

    def wrote(self, target, is_copy: bool) -> None:
        """Into a part of one."""
        record = self._memory.find(target) if target.is_cuda and self._is_looked_at(target) else None
        if record is None or is_copy and target.numel() * target.itemsize >= record.size_bytes:
            return
        call = self._progress.model_calls
        if record.made_in_call and record.made_in_call != call and not record.is_cache:
            self._is_one(record, target, f"#{record.size_bytes}")
        record.made_in_call = call

    def _is_one(self, record: Record, tensor, size: str) -> None:
        self._note(record, tensor)
        if record.allocation and tensor.dtype is torch.float32:
            place = self.place_of(record.stack) + size
            self.found[place] = max(self.found.get(place, 0), record.size_bytes)

    def _note(self, record: Record, tensor) -> None:
        record.is_cache = True
        if record.allocation:
            number = self._memory.device.tensor(tuple(tensor.size()), dtype_name(tensor.dtype), KIND)
            self._memory.device.tensor_note(record.allocation, number, 0)

    def place_of(self, stack: int) -> str:
        """The innermost Python line that made it."""
        if stack not in self._places:
            self._places[stack] = self._memory.stacks.innermost(stack)
        return self._places[stack]

    def halve(self, places: set[str], halved) -> None:
        """What is made at these lines in 32 bits takes half; halved() is told of it."""

        def size_of(tensor, stack: int, size_bytes: int) -> int:
            if tensor.dtype is not torch.float32 or not stack:
                return size_bytes
            place = self.place_of(stack)
            if not size_bytes or place not in places and f"{place}#{size_bytes}" not in places:
                return size_bytes
            halved()
            return size_bytes // 2

        self._memory.size_of = size_of


def short(place: str) -> str:
    return os.path.basename(place.partition("#")[0])
