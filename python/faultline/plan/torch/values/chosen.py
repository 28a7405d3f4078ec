"""How many elements of a mask can be true at most, and what counts come to in all, where the way they were made tells: zeros into which a list of places was written have as many as the list is long, two of them joined as many as both.
So a mask of sampled proposals chooses no more than were sampled, whatever the values are; and what bincount() counted, or a sum over some dimensions of a one-hot tensor, comes to no more than was counted.
Facts of a storage, through all views of it."""

from __future__ import annotations

import torch

from ..operations.operations import overloads
from . import ranges

aten = torch.ops.aten


def _set(*names: str) -> set:
    return set(overloads(*names))


_ZEROS = _set("zeros", "zeros_like", "new_zeros", "zero_")
_FILLS = _set("full", "full_like", "new_full", "fill_")
_PUTS = _set("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put")
_BOTH = _set("bitwise_or", "logical_or", "__or__", "bitwise_or_", "logical_or_", "add", "add_", "maximum")
_BOTH |= _set("bitwise_xor", "logical_xor")
_EITHER = _set("bitwise_and", "logical_and", "__and__", "bitwise_and_", "logical_and_", "mul", "mul_", "minimum")
_SAME = _set("_to_copy", "clone", "view", "_unsafe_view", "alias", "detach", "bool")
_MARKS = {aten.scatter.value, aten.scatter_.value}
_SUMS = {aten.sum.dim_IntList, aten.sum.default}
_AGAINST_ZERO = {"gt": lambda n: n >= 0, "ge": lambda n: n > 0, "eq": lambda n: n != 0, "ne": lambda n: n == 0}


def most(memory, tensor) -> int | None:
    record = memory.find(tensor) if tensor.is_cuda else None
    if record is None or record.chosen is None or tensor.numel() * tensor.dtype.itemsize > record.size_bytes:
        return None  # an expanded one has each element several times
    return min(record.chosen, tensor.numel())


def most_in_all(memory, tensor) -> int | None:
    """What its whole numbers, which are not negative, come to at most."""
    record = memory.find(tensor) if tensor.is_cuda else None
    whole = record is not None and tensor.numel() * tensor.dtype.itemsize <= record.size_bytes  # not expanded
    total = record.total if whole else None
    known = ranges.bound(memory, tensor)
    if known is None or known[0] < 0:
        return total
    count = most(memory, tensor)
    each = known[0] * (tensor.numel() if count is None else count)
    return each if total is None else min(each, total)


def _total(memory, func, args, operands, is_fresh: bool) -> int | None:
    """Of the first result, or of what was written."""
    if func in _MARKS and type(args[3]) is int and args[3] >= 0:
        known = most_in_all(memory, operands[0])  # as it was: ranges.py follows later
        return None if known is None else known + args[3] * args[2].numel()
    if not is_fresh:
        return None
    if func in _SUMS and not ranges.is_whole(operands[0]):
        return None
    if func in _SUMS or func in _SAME or func is aten.sort.default:
        return most_in_all(memory, operands[0])
    return None


def _is_zero(value) -> bool:
    return isinstance(value, (bool, int, float)) and value == 0


def _written(memory, target, indices, value) -> int:
    """Elements that index_put writes at most."""
    if isinstance(value, torch.Tensor) and not value.is_cuda and value.numel() == 1 and _is_zero(value.item()):
        return 0
    count, places, masked = 1, [], 0
    for dim, index in enumerate(indices):
        if index is None:
            count *= target.size(dim)
        elif index.dtype in (torch.bool, torch.uint8):
            known = most(memory, index)
            places.append(torch.Size((index.numel() if known is None else known,)))
            masked += index.dim() - 1
        else:
            places.append(index.size())
    for dim in range(len(indices) + masked, target.dim()):
        count *= target.size(dim)
    return count * (torch.broadcast_shapes(*places).numel() if places else 1)


def _of_result(memory, func, args, operands, count: int) -> int | None:
    if func in _ZEROS:
        return 0
    if func in _FILLS:
        return 0 if _is_zero(args[-1]) else None
    first = most(memory, operands[0]) if operands else None
    if func in _PUTS:
        return None if first is None else first + _written(memory, args[0], args[1], args[2])
    if func in _MARKS:
        return None if first is None else first + args[2].numel()
    if func in _SAME:
        return first
    if func in _BOTH or func in _EITHER:
        known = [most(memory, t) if t.numel() == count else None for t in operands]
        if len(known) != 2:
            return first if func in _EITHER else None
        if func in _EITHER:
            return min((n for n in known if n is not None), default=None)
        return None if None in known else sum(known)
    if func is aten.cat.default:
        known = [most(memory, t) for t in operands]
        return None if None in known else sum(known)
    name = func._schema.name.rpartition("::")[2]
    if name in _AGAINST_ZERO and len(args) > 1 and isinstance(args[1], (int, float)) and _AGAINST_ZERO[name](args[1]):
        return first
    return None


def follow(memory, func, args, operands, outcome, fresh) -> None:
    """After an operation: what follows for its result, and for what it wrote."""
    results = fresh or [operands[index] for index in outcome.mutated]
    for tensor in results[:1]:
        record = memory.find(tensor)
        if record is not None:
            _note(record, tensor, _of_result(memory, func, args, operands, tensor.numel()))
            whole = ranges.is_whole(tensor) and tensor.numel() * tensor.dtype.itemsize >= record.size_bytes
            record.total = _total(memory, func, args, operands, bool(fresh)) if whole and operands else None
    for tensor in results[1:]:
        if (record := memory.find(tensor)) is not None:
            record.chosen = record.total = None


def copied(memory, target, source) -> None:
    """Another tensor's numbers were written into target, of whatever it was made before."""
    record = memory.find(target)
    if record is not None:
        record.share = record.choice = record.which = None
        whole = target.numel() * target.dtype.itemsize >= record.size_bytes and source.numel() == target.numel()
        record.total = most_in_all(memory, source) if whole and ranges.is_whole(source) else None
        _note(record, target, most(memory, source) if source.numel() == target.numel() else None)


def _note(record, tensor, found: int | None) -> None:
    whole = tensor.numel() * tensor.dtype.itemsize >= record.size_bytes
    if found is not None and not whole:  # of a part: the rest is as it was
        found = None if record.chosen is None else record.chosen + found
    record.chosen = found
