"""The most that a whole number can be which a dry run does not compute, where the way it was made tells: what randint() draws is below its bound, an argmax is a place among those it chose from,
a mask's sum is at most its size. A maximum or a sum of such numbers reads as the most it can be, so that sizes taken from it are the largest. Facts of a storage, through all views of it."""

from __future__ import annotations

import torch

from ..operations.operations import overloads
from . import indices

_TOO_MUCH = 1 << 40
_LEAST_CHOICE = 5  # with fewer the first stands for the place
_LARGEST_LOOKED_AT = 1 << 24  # elements of the host


def _set(*names: str) -> set:
    return set(overloads(*names))


_DRAWS = _set("randint", "randint_like", "random_")
_FILLS = _set("full", "full_like", "fill_", "new_full")
_ZEROS = _set("zeros", "zeros_like", "new_zeros", "zero_")
_PLACES = _set("argmax", "argmin", "topk", "sort", "argsort", "max", "min", "kthvalue", "median", "cummax", "cummin")
_ONLY_PLACES = _set("argmax", "argmin", "argsort")
_SUMS = _set("sum", "cumsum")
_MOST = _set("max", "amax", "cummax")
_CHOOSES = _set("min", "amin", "sort", "topk", "kthvalue", "median", "mode", "cummin", "clone", "_to_copy", "index")
_CHOOSES |= _set("index_select", "gather", "flip", "roll", "repeat", "take", "masked_select", "constant_pad_nd")
_JOINS = _set("cat", "stack", "where", "maximum", "minimum")
_DRAWN = _set("multinomial")
_TOPK, _WHERE = _set("topk", "kthvalue"), _set("where")  # those that say how many, or which, before the dimension
_WHOLE_SUMS = _set("sum")
_SCATTERS = {torch.ops.aten.scatter.src, torch.ops.aten.scatter_.src}
_SAME_TENSORS = _set("eq") & {torch.ops.aten.eq.Tensor}


def _arithmetic(func, args, bounds):
    """a + b, a * b, a - 1, a // 2, a % n, clamp: of numbers that are not negative."""
    name = func._schema.name.rpartition("::")[2].rstrip("_")
    first = bounds[0] if bounds else None
    if first is None:
        return None
    other = exact = args[1] if len(args) > 1 else None
    if isinstance(other, torch.Tensor):
        other = bounds[1] if len(bounds) > 1 else None
        exact = None if args[1].is_cuda else other
    whole = isinstance(other, int)
    if name == "add" and whole:
        return first + other
    if name == "mul" and whole and other >= 0:
        return first * other
    if name == "sub":
        return first - exact if isinstance(exact, int) else first
    if name in ("floor_divide", "div") and isinstance(exact, int) and exact > 0:
        return first // exact
    if name in ("remainder", "fmod") and isinstance(exact, int) and exact > 0:
        return min(first, exact - 1)
    if name in ("clamp", "clamp_max"):
        limit = args[2] if name == "clamp" and len(args) > 2 else args[1] if name == "clamp_max" else None
        return min(first, limit) if isinstance(limit, int) else first
    return None


def bound(memory, tensor):
    """(the most, is it a maximum or a sum)."""
    if tensor.is_cuda:
        record = memory.find(tensor)
        known = record.most if record is not None else None
        if known is not None or tensor.dtype is torch.bool:
            return known or (1, False)
        return _of_known(record, tensor)
    if tensor.dim() == 0 and not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
        return int(tensor.item()), False
    return None


def _of_known(record, tensor):
    """Of numbers that are followed one by one: what is chosen among them by values that are not known is none of a larger one."""
    host = _known(record, tensor)
    return None if host is None else of_host(host)


def _known(record, tensor):
    if record is None or record.shadow is None or record.assumed or not tensor.numel() or not is_whole(tensor):
        return None
    return torch.empty(0, dtype=tensor.dtype).set_(
        record.shadow, tensor.storage_offset(), tensor.size(), tensor.stride()
    )


def _is_each_place(memory, index, target) -> bool:
    """Is all of target written over?"""
    host = _known(memory.find(index), index) if index.dim() == target.dim() == 1 else None
    return host is not None and host.unique().numel() == target.numel()


def _of_results(memory, func, args, operands, count: int, size: int):
    """For each result (the most, reduced), or None."""
    none = [None] * count
    if func in _DRAWS:
        numbers = [a for a in args if type(a) is int][:2]
        return [(numbers[-1] - 1, False)] if numbers else none
    if func in _FILLS:
        value = next((a for a in reversed(args) if isinstance(a, (int, float))), None)
        return [(value, False)] if isinstance(value, int) else none
    if func in _ZEROS:
        return [(0, False)]
    if func in _DRAWN:
        return [(operands[0].size(-1) - 1, False)]
    if func in _SAME_TENSORS:
        return [(0, False)]  # nothing is taken to be equal to something else
    places = none
    if (func in _ONLY_PLACES or func in _PLACES and count > 1) and operands:
        dim = next((a for a in args[1:] if type(a) is int), None)
        if func in _TOPK:
            dim = args[2] if len(args) > 2 else -1
        among = operands[0].size(dim) if dim is not None and operands[0].dim() else operands[0].numel()
        places = [None] * (count - 1) + [(among - 1, False)]
    if func in _ONLY_PLACES or not operands:
        return places
    if func in _SCATTERS:
        target, index, source = operands[:3]
        known = [bound(memory, t) for t in ([source] if _is_each_place(memory, index, target) else [target, source])]
        return none if None in known else [(max(k[0] for k in known), any(k[1] for k in known))]
    joined = operands[1:] if func in _WHERE else operands if func in _JOINS else operands[:1]
    known = [bound(memory, t) for t in joined]
    if func in _SUMS | _MOST | _CHOOSES | _JOINS:
        if any(k is None for k in known):
            return places
        most, reduced = max(k[0] for k in known), any(k[1] for k in known)
        if func in _SUMS:
            along = operands[0].size(args[1]) if func not in _WHOLE_SUMS and operands[0].dim() else 0
            return [(most * (along or operands[0].numel() // max(1, size)), True)]
        return [(most, reduced or func in _MOST), *places[1:]]
    known = [bound(memory, t) for t in operands]
    value = _arithmetic(func, args, [k and k[0] for k in known])
    return [(value, any(k and k[1] for k in known))] if value is not None else none


def follow(memory, values, func, args, operands, outcome, fresh) -> None:
    """After an operation: what follows for its results, and for what it wrote."""
    written = [operands[index] for index in outcome.mutated]
    results = [*fresh, *written]
    if not any(is_whole(t) for t in results):
        return
    found = [*_of_results(memory, func, args, operands, len(results), results[0].numel()), *[None] * len(results)]
    for tensor, known in zip(results, found):
        if is_whole(tensor) and tensor.is_cuda:
            note(memory, tensor, known)
            if func in _DRAWS:
                _note_draw(memory, tensor, args)
            if _is_place(func, tensor, results) and known is not None and known[0] >= _LEAST_CHOICE:
                record = memory.find(tensor)
                if record is not None and record.stand_in is None and (record.shadow is None or record.assumed):
                    record.stand_in = _place(known[0])
                    values.assume(tensor)
            if known is not None and known[1] and tensor.numel() <= 1024 and values.is_assumed(tensor):
                values.assume(tensor, _within(known[0], tensor.dtype))


def _is_place(func, tensor, results) -> bool:
    return func in _ONLY_PLACES or func in _DRAWN or func in _PLACES and len(results) > 1 and tensor is results[-1]


def _place(last: int) -> int:
    """Which of 0 to last stands for one that was chosen: none of those that mark an end or a gap, which are the first few and the last, so that a loop over tokens goes on."""
    return max(4, last * 5 // 8)


def is_whole(tensor) -> bool:
    return not tensor.dtype.is_floating_point and not tensor.dtype.is_complex


def _within(number: int, dtype) -> int:
    return number if dtype is torch.bool else max(torch.iinfo(dtype).min, min(torch.iinfo(dtype).max, number))


def note(memory, tensor, known) -> None:
    """The tensor's numbers are at most so; where it is a part of a storage the rest is as it was."""
    record = memory.find(tensor)
    if record is None:
        return
    if known is not None and not abs(known[0]) < _TOO_MUCH:
        known = None
    if tensor.numel() * tensor.dtype.itemsize < record.size_bytes and record.most is not None and known is not None:
        known = max(known[0], record.most[0]), known[1] and record.most[1]
    record.most, record.extremes = known, None


def _note_draw(memory, tensor, args) -> None:
    numbers = [a for a in args if type(a) is int][:2]
    record = memory.find(tensor)
    if numbers and record is not None and tensor.numel() * tensor.dtype.itemsize >= record.size_bytes:
        record.extremes = indices.of_draw(numbers[0] if len(numbers) > 1 else 0, numbers[-1], tensor.numel())


def note_host(memory, tensor, host) -> None:
    """The tensor has the numbers of a tensor of the host."""
    note(memory, tensor, of_host(host))
    record = memory.find(tensor)
    if record is not None and record.most is not None and tensor.numel() * tensor.dtype.itemsize >= record.size_bytes:
        record.extremes = int(host.min()), record.most[0]


def is_most(memory, tensor) -> bool:
    """Does it read as the most it can be?"""
    record = memory.find(tensor)
    return record is not None and record.most is not None and record.most[1]


def of_host(host) -> tuple[int, bool] | None:
    """Of whole numbers that the program copies to the GPU and that are too many to be followed one by one."""
    if host.dtype in (torch.int64, torch.int32, torch.int16) and 0 < host.numel() <= _LARGEST_LOOKED_AT:
        return int(host.max()), False
    return None
