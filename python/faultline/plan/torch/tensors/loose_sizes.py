"""Results of which values decide how many rows they have: the dry run takes the most there can be, and what is made of them is larger than it may be, too.

Where an even share of the rows was counted (shares.py), a part of them may be more.

Each such storage knows the step between two rows and the share of rows that is there in any case. A result of an operation on one of them that has a dimension of that size is
as loose as it is: its bytes are an estimate between its firm share and all of it, and so is what the operation takes meanwhile. So an interval follows the program: boxes to proposals, proposals to features.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import torch

from ...session.estimates import OF_VALUES, Estimated
from ...session.unplannable import Unplannable, first_sentence

aten = torch.ops.aten


class Loose(NamedTuple):
    step: int  # elements from one row to the next
    firm: float  # the share of rows that is there at the least end
    most: float = 1.0  # how many times as many there are at the other


def mark(memory, tensor, dim: int = 0, firm: float = 0.0, most: float = 1.0) -> None:
    """tensor has as many rows as values say, and all were counted, or a share."""
    record = memory.find(tensor)
    if record is not None and tensor.dim() > dim and (firm, most) != (1.0, 1.0):
        record.loose = Loose(max(1, tensor.stride(dim)), firm, most)
        memory.any_loose = True


@contextlib.contextmanager
def made_with(memory, rows: int, firm: float = 0.0, most: float = 1.0):
    """Results with so many rows are made here, which are the most there can be, or a share."""
    memory.any_loose, memory.loose, memory.loose_places = True, {rows: (firm, most)}, ()
    try:
        yield
    finally:
        memory.loose = None


def _loose_dim(memory, tensor) -> tuple[int, tuple[float, float]] | None:
    record = memory.find(tensor) if tensor.is_cuda else None
    if record is None or record.loose is None or not tensor.dim():
        return None
    step, *ends = record.loose
    return next((d for d in range(tensor.dim()) if tensor.stride(d) == step and tensor.size(d) > 1), 0), tuple(ends)


def of(memory, func, args, operands) -> dict[int, tuple[float, float]] | None:
    """Sizes of dimensions that may be others, and the shares of each that are there at both ends. Where something else has such a size, too, only a dimension of the same number is meant."""
    memory.loose_places = ()
    if not memory.any_loose:
        return None
    if func is aten.cat.default:
        return _joined(memory, args)
    found: dict[int, tuple[float, float]] = {}
    places, others = set(), []
    for position, tensor in enumerate(operands):
        if (loose := _loose_dim(memory, tensor)) is not None:
            dim, ends = loose
            if (func, position, dim) in _SUMMED_OVER:
                continue
            known = found.get(tensor.size(dim))
            found[tensor.size(dim)] = ends if known is None else (min(known[0], ends[0]), max(known[1], ends[1]))
            places.add((tensor.size(dim), dim))
            others.extend(size for d, size in enumerate(tensor.size()) if d != dim)
        else:
            others.extend(tensor.size())
    memory.loose_places = {(size, dim) for size, dim in places if size in others}
    return found or None


# Of matrix products: (operand, dimension) that are not in the result, as of weights' gradients.
_MM, _ADDMM = aten.mm.default, aten.addmm.default
_SUMMED_OVER = {(_MM, 0, 1), (_MM, 1, 0), (_ADDMM, 1, 1), (_ADDMM, 2, 0)}


def check(memory, name: str, operands, problem: Exception) -> None:
    """What refuses a size that was counted as large as it can be refuses nothing of the program's."""
    if memory.any_loose and any(_loose_dim(memory, operand) is not None for operand in operands):
        raise Unplannable(
            f"{name} refuses a size that depends on values, which a dry run does not compute and counted as large as it can be; --real computes them ({type(problem).__name__}: {first_sentence(str(problem))})"
        ) from problem


def _joined(memory, args) -> dict[int, tuple[float, float]] | None:
    dim, rows, firm_rows, most_rows, any_loose = (args[1] if len(args) > 1 else 0), 0, 0.0, 0.0, False
    found: dict[int, tuple[float, float]] = {}
    for tensor in args[0]:
        if not tensor.dim() or not tensor.numel():
            continue
        along = dim % tensor.dim()
        loose = _loose_dim(memory, tensor)
        any_loose |= loose is not None
        rows += tensor.size(along)
        firm, most = (1.0, 1.0) if loose is None or loose[0] != along else loose[1]
        firm_rows += tensor.size(along) * firm
        most_rows += tensor.size(along) * most
        if loose is not None and loose[0] != along:  # side by side: each row is as loose as it was
            found[tensor.size(loose[0])] = loose[1]
    if any_loose and not found:
        found[rows] = firm_rows / max(1, rows), most_rows / max(1, rows)
    return found or None


def of_result(memory, tensor, size_bytes: int):
    """(the bytes it takes, what is to be known of its storage)."""
    for dim in range(tensor.dim()) if memory.loose else ():
        ends = memory.loose.get(tensor.size(dim))
        if ends is not None and _is_meant(memory, tensor.size(dim), dim):
            size = _estimated(size_bytes, *ends) if size_bytes else size_bytes
            return size, Loose(max(1, tensor.stride(dim)), *ends)
    return size_bytes, None


def _is_meant(memory, size: int, dim: int) -> bool:
    dims = [place[1] for place in memory.loose_places if place[0] == size]
    return not dims or dim in dims


def _estimated(size_bytes: int, firm: float, most: float) -> Estimated:
    return Estimated.at_ends(size_bytes, int(size_bytes * firm), round(size_bytes * most), OF_VALUES)


def of_temporary(memory, size_bytes: int):
    """What an operation on such a tensor takes meanwhile."""
    largest = size_bytes.most if isinstance(size_bytes, Estimated) else size_bytes
    least = size_bytes if all(firm == 1.0 for firm, _ in memory.loose.values()) else 0
    return Estimated(
        size_bytes, least, round(largest * max(1.0, *(most for _, most in memory.loose.values()))), OF_VALUES
    )
