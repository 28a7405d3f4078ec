"""How many of a tensor's unknown values are nonzero, where the way it was made tells: a one-hot tensor over n classes has one in n, and of indices
into n classes one in n is a given class. So what a mixture of experts routes to each of them is counted as an even share: which tokens go where is a
matter of values, but all experts together get each token once for each of its choices. Both facts stay with the storage, through views of it."""

from __future__ import annotations

import torch

aten = torch.ops.aten


def _overloads(*names: str) -> set:
    found = (getattr(aten, name, None) for name in names)
    return {getattr(packet, overload) for packet in found if packet is not None for overload in packet.overloads()}


# Which result has the indices, and where the dimension stands.
_INDICES = {aten.topk.default: (1, 2), aten.argmax.default: (0, 1), aten.max.dim: (1, 1), aten.sort.default: (1, 1)}
_EQUAL = _overloads("eq") - {aten.eq.Tensor}
_SCATTERED = {aten.scatter_.value, aten.scatter.value}
_SAME = _overloads("_to_copy", "clone", "ne", "gt", "view", "_unsafe_view", "detach", "alias", "bool")


def _whole(tensor) -> int:
    return tensor.untyped_storage().nbytes() // max(1, tensor.dtype.itemsize)


def follow(memory, func, args, operands, fresh) -> None:
    """After an operation: what follows for its results."""
    if func in _INDICES:
        position, place = _INDICES[func]
        dim = args[place] if len(args) > place else -1
        if position < len(fresh) and isinstance(dim, int) and args[0].dim() > 0:
            _keep(memory, fresh[position], "classes", args[0].size(dim))
    elif func in _SCATTERED:
        target, dim, index = args[:3]
        if target.dim() and target.numel() == _whole(target):  # into zeros, as one_hot() does
            _keep(memory, fresh[0] if fresh else target, "share", index.size(dim) / max(1, target.size(dim)))
    elif func in _EQUAL and fresh:
        record = memory.find(operands[0])
        if record is not None and record.classes:
            _keep(memory, fresh[0], "share", 1 / record.classes)
    elif func in _SAME and fresh and operands and operands[0].is_cuda:
        record = memory.find(operands[0])
        if record is not None and (record.share or record.classes):
            _keep(memory, fresh[0], "share", record.share)
            _keep(memory, fresh[0], "classes", record.classes)


def _keep(memory, tensor, name: str, value) -> None:
    record = memory.find(tensor)
    if record is not None:
        setattr(record, name, value)


def expected(memory, tensor) -> int | None:
    """How many are nonzero if they are spread evenly; None where nothing is known."""
    record = memory.find(tensor)
    return None if record is None or not record.share else round(tensor.numel() * record.share)


def told(what: str, count: int, most: int) -> str:
    return (
        f"{what}: by how they were made {count} of {most} are chosen if the choice is even (experts, classes), and so many were counted; "
        f"how many there are depends on the values, from 0 to {most}"
    )
