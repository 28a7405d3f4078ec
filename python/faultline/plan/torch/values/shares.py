"""How many of a tensor's unknown values are nonzero, where the way it was made tells: a one-hot tensor over n classes has one in n, and of indices
into n classes one in n is a given class. So what a mixture of experts routes to each of them is counted as an even share: which tokens go where is a
matter of values, but all experts together get each token once for each of its choices. Both facts stay with the storage, through views of it.

The count is an estimate. What the report calls its upper end is the most uneven routing: the experts that are asked for first get every token, as many experts as a token has choices, and those that are asked for
later none, so that all together get no more than there is. At its lower end the first get none, and the others what they have if the choice is even."""

from __future__ import annotations

from typing import NamedTuple

import torch

aten = torch.ops.aten


def _overloads(*names: str) -> set:
    found = (getattr(aten, name, None) for name in names)
    return {getattr(packet, overload) for packet in found if packet is not None for overload in packet.overloads()}


# Which result has the indices, and where the dimension stands.
_INDICES = {aten.topk.default: (1, 2), aten.argmax.default: (0, 1), aten.max.dim: (1, 1), aten.sort.default: (1, 1)}
_SEVERAL = {aten.topk.default, aten.sort.default}
_EQUAL = _overloads("eq") - {aten.eq.Tensor}
_SCATTERED = {aten.scatter_.value, aten.scatter.value}
_SAME = _overloads("_to_copy", "clone", "ne", "gt", "view", "_unsafe_view", "detach", "alias", "bool")


class Choice:
    """What topk(), argmax() and their kin chose: indices into so many classes."""

    def __init__(self, classes: int, rows: int, each: int):
        self.classes = classes
        self.rows, self.each = rows, each  # each of the rows has so many different ones
        self._asked: dict = {}  # classes, in the order in which the program asks what was sent to them

    def may_have_all(self, which) -> bool:
        return self._asked.setdefault(which, len(self._asked)) < self.each


class Found(NamedTuple):
    count: int
    most: int  # that one class can have
    ends: tuple[float, float]  # how many times as many there are at the least end, and at the other

    @property
    def is_open(self) -> bool:
        return self.ends != (1.0, 1.0)


def _whole(tensor) -> int:
    return tensor.untyped_storage().nbytes() // max(1, tensor.dtype.itemsize)


def follow(memory, func, args, operands, fresh) -> None:
    """After an operation: what follows for its results."""
    if func in _INDICES:
        position, place = _INDICES[func]
        dim = args[place] if len(args) > place else -1
        if position < len(fresh) and isinstance(dim, int) and args[0].dim() > 0:
            indices, each = fresh[position], 1
            if func in _SEVERAL:
                each = indices.size(dim) if indices.dim() else 1
            _keep(memory, indices, "choice", Choice(args[0].size(dim), indices.numel() // max(1, each), each))
    elif func in _SCATTERED:
        target, dim, index = args[:3]
        if target.dim() and target.numel() == _whole(target):  # into zeros, as one_hot() does
            made = fresh[0] if fresh else target
            _keep(memory, made, "share", index.size(dim) / max(1, target.size(dim)))
            each = index.size(dim) if index.dim() else 1
            known = getattr(memory.find(index), "choice", None)
            _keep(memory, made, "choice", known or Choice(target.size(dim), index.numel() // max(1, each), each))
            _keep(memory, made, "which", (target.stride(dim),))
    elif func in _EQUAL and fresh:
        record = memory.find(operands[0])
        if record is not None and record.choice and not record.share:
            _keep(memory, fresh[0], "share", 1 / record.choice.classes)
            _keep(memory, fresh[0], "choice", record.choice)
            _keep(memory, fresh[0], "which", args[1])
    elif func in _SAME and fresh and operands and operands[0].is_cuda:
        record = memory.find(operands[0])
        if record is not None and (record.share or record.choice):
            _keep(memory, fresh[0], "share", record.share)
            _keep(memory, fresh[0], "choice", record.choice)
            _keep(memory, fresh[0], "which", _of_copy(_class(record, operands[0]), operands[0], fresh[0]))


def _class(record, tensor):
    """Of which class a mask tells, or (of one of several) the step from one class to the next."""
    if not isinstance(record.which, tuple):
        return record.which
    spans = any(size > 1 and stride == record.which[0] for size, stride in zip(tensor.size(), tensor.stride()))
    return record.which if spans else f"at {tensor.storage_offset()}"


def _of_copy(which, tensor, copy):
    if not isinstance(which, tuple) or tensor.dim() != copy.dim():
        return which
    return next(((copy.stride(d),) for d in range(copy.dim()) if tensor.stride(d) == which[0]), which)


def _keep(memory, tensor, name: str, value) -> None:
    record = memory.find(tensor)
    if record is not None:
        setattr(record, name, value)


def expected(memory, tensor) -> Found | None:
    """How many are nonzero if they are spread evenly, and what may be; None where nothing is known."""
    record = memory.find(tensor)
    if record is None or not record.share:
        return None
    count, choice, which = round(tensor.numel() * record.share), record.choice, _class(record, tensor)
    if not count or isinstance(which, tuple) and tensor.numel() == _whole(tensor):
        return Found(count, count, (1.0, 1.0))  # of all classes: each row has as many as it chose
    if choice is None or isinstance(which, tuple):
        return Found(count, tensor.numel(), (0.0, tensor.numel() / count))
    most = min(tensor.numel(), choice.rows)
    if count >= most:
        return Found(count, most, (1.0, 1.0))
    return Found(count, most, (0.0, most / count) if choice.may_have_all(which) else (1.0, 0.0))


def told(what: str, found: Found, size: int) -> str:
    return (
        f"{what}: by how they were made {found.count} of {size} are chosen if the choice is even (experts, classes), and so many were counted; "
        f"how many there are depends on the values, from 0 to {found.most}"
    )
