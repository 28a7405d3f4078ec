"""Results of which values decide how many rows they have: the dry run takes the most there can be, and what is made of them is larger than it may be, too.

Each such storage knows the step between two rows and the share of rows that is there in any case. A result of an operation on one of them that has a dimension of that size is
as loose as it is: its bytes are an estimate between its firm share and all of it, and so is what the operation takes meanwhile. So an interval follows the program: boxes to proposals, proposals to features.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import torch

from .estimates import Estimated
from .unplannable import Unplannable, first_sentence

aten = torch.ops.aten
WHAT = "results whose size depends on values"


class Loose(NamedTuple):
    step: int  # elements from one row to the next
    firm: float  # the share of rows that is there in any case


def mark(memory, tensor, dim: int = 0) -> None:
    """tensor has as many rows as values say, and all were counted."""
    record = memory.find(tensor)
    if record is not None and tensor.dim() > dim:
        record.loose = Loose(max(1, tensor.stride(dim)), 0.0)
        memory.any_loose = True


@contextlib.contextmanager
def made_with(memory, rows: int):
    """Results with so many rows are made here, which are the most there can be."""
    memory.any_loose, memory.loose = True, {rows: 0.0}
    try:
        yield
    finally:
        memory.loose = None


def _loose_dim(memory, tensor) -> tuple[int, float] | None:
    record = memory.find(tensor) if tensor.is_cuda else None
    if record is None or record.loose is None or not tensor.dim():
        return None
    step, firm = record.loose
    return next((d for d in range(tensor.dim()) if tensor.stride(d) == step and tensor.size(d) > 1), 0), firm


def of(memory, func, args, operands) -> dict[int, float] | None:
    """Sizes of dimensions that may be smaller, and the firm share of each."""
    if not memory.any_loose:
        return None
    if func is aten.cat.default:
        return _joined(memory, args)
    found: dict[int, float] = {}
    for tensor in operands:
        if (loose := _loose_dim(memory, tensor)) is not None:
            dim, firm = loose
            found[tensor.size(dim)] = min(firm, found.get(tensor.size(dim), 1.0))
    return found or None


def check(memory, name: str, operands, problem: Exception) -> None:
    """What refuses a size that was counted as large as it can be refuses nothing of the program's."""
    if memory.any_loose and any(_loose_dim(memory, operand) is not None for operand in operands):
        raise Unplannable(
            f"{name} refuses a size that depends on values, which a dry run does not compute and counted as large as it can be; --real computes them ({type(problem).__name__}: {first_sentence(str(problem))})"
        ) from problem


def _joined(memory, args) -> dict[int, float] | None:
    dim, rows, firm_rows, any_loose = (args[1] if len(args) > 1 else 0), 0, 0.0, False
    found: dict[int, float] = {}
    for tensor in args[0]:
        if not tensor.dim() or not tensor.numel():
            continue
        along = dim % tensor.dim()
        loose = _loose_dim(memory, tensor)
        any_loose |= loose is not None
        rows += tensor.size(along)
        if loose is None or loose[0] == along:
            firm_rows += tensor.size(along) * (1.0 if loose is None else loose[1])
        else:  # side by side: each row is as loose as it was
            firm_rows += tensor.size(along)
            found[tensor.size(loose[0])] = loose[1]
    if any_loose and not found:
        found[rows] = firm_rows / max(1, rows)
    return found or None


def of_result(memory, tensor, size_bytes: int):
    """(the bytes it takes, what is to be known of its storage)."""
    for dim in range(tensor.dim()) if memory.loose else ():
        firm = memory.loose.get(tensor.size(dim))
        if firm is not None:
            size = Estimated(size_bytes, int(size_bytes * firm), size_bytes, WHAT) if size_bytes else size_bytes
            return size, Loose(max(1, tensor.stride(dim)), firm)
    return size_bytes, None


def of_temporary(size_bytes: int):
    """What an operation on such a tensor takes meanwhile."""
    most = size_bytes.most if isinstance(size_bytes, Estimated) else size_bytes
    return Estimated(size_bytes, 0, most, WHAT)
