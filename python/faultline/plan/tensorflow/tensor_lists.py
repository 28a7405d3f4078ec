"""Lists of tensors inside graphs: what loops keep of each round (TensorArray, the values that a loop's gradient needs).

A list has its tensors' memory, not a copy; stacked they are a new tensor.
"""

from __future__ import annotations

import math

_MADE_ALIKE = ("ZerosLike", "AddN", "AddV2")
_MOST_PIECES = 1 << 14


class KeptTensor:
    """A list's share in an allocation: it ends with the last list that has it."""

    __slots__ = ("_session", "holding")

    def __init__(self, session, holding):
        self._session, self.holding = session, holding
        holding.arrays += 1

    def __del__(self):
        self.holding.let_go(self._session)


class TensorList:
    __slots__ = ("length", "element", "kept", "is_shared", "itemsize", "numbers", "zeros", "zeros_each", "replaced")

    def __init__(self, length, element, kept=(), itemsize=0, numbers=()):
        self.length = length  # None: not known
        self.element = element  # the shape of what was put in, None: not known
        self.kept = list(kept)
        self.itemsize = itemsize
        self.numbers = numbers  # of each element, where they are all the same (a shape); None: they are not known; (): none was put in
        self.zeros: list[KeptTensor] = []  # pieces of as many elements of zeros
        self.zeros_each, self.replaced = 1, 0  # elements of a piece, and how many of the next to go were put in
        self.is_shared = False  # somebody else has it too: it is copied before it is changed

    def copy(self) -> TensorList:
        made = TensorList(self.length, self.element, self.kept, self.itemsize, self.numbers)
        made.zeros, made.zeros_each, made.replaced = list(self.zeros), self.zeros_each, self.replaced
        return made

    def own(self) -> TensorList:
        return self.copy() if self.is_shared else self

    def replace_zeros(self, count: int = 1) -> None:
        """Elements that are put in have the place of as many zeros."""
        gone, self.replaced = divmod(self.replaced + count, self.zeros_each)
        if gone:
            del self.zeros[-gone:]

    def bytes_each(self) -> int:
        return math.prod(self.element) * self.itemsize if self.element is not None else 0


def come_to(walk, step) -> bool:
    """Is it an operation on lists? Then the walk has been through it."""
    handle = _HANDLES.get(step.kind)
    if handle is None and step.kind in _MADE_ALIKE and step.ids[0] in walk.lists:
        handle = _made_alike
    if handle is None:
        return False
    handle(walk, step)
    return True


def _size(numbers):
    return None if numbers is None or numbers.size != 1 else int(numbers.reshape(-1)[0])


def _element(numbers):
    """An element's shape as an argument tells it; -1 alone, or in it: not known."""
    if numbers is None or numbers.ndim == 0 or (numbers < 0).any():
        return None
    return tuple(int(n) for n in numbers)


def _begin(walk, step) -> None:
    reserves = step.kind == "TensorListReserve"
    length = _size(walk.facts.numbers(step.inputs[1])) if reserves else 0
    walk.lists[step.outputs[0].id] = TensorList(length, _element(walk.facts.numbers(step.inputs[0])))


def _changed(walk, step) -> TensorList | None:
    known = walk.lists.get(step.ids[0])
    if known is None:
        return None
    if walk.uses[step.ids[0]] > 1:
        known = known.copy()
    else:
        known = known.own()
    walk.lists[step.outputs[0].id] = known
    return known


def _put(walk, step) -> None:
    known = _changed(walk, step)
    if known is None:
        return
    item = step.inputs[-1]
    pushed = step.kind == "TensorListPushBack"
    if not pushed:
        known.replace_zeros()
        _grow(walk, step, known)
    elif known.length is not None:
        known.length += 1
    known.itemsize = item.dtype.base_dtype.size or 0
    if (shape := walk.facts.shape(item)) is not None:
        known.element = shape
    known.numbers = _same_numbers(known.numbers, walk.facts.numbers(item) if item.dtype.is_integer else None)
    holding = walk.holding_of(item)
    if holding is not None:
        known.kept.append(KeptTensor(walk.session, holding))


def _grow(walk, step, known: TensorList) -> None:
    """An array that grows with what is put in (TensorArray with dynamic_size)."""
    attributes = step.operation.node_def.attr
    if known.length is None or not attributes["resize_if_index_out_of_bounds"].b:
        return
    at = _size(walk.facts.numbers(step.inputs[1]))
    # where it is not known, each that is put in is one more
    known.length = max(known.length, len(known.kept) + 1 if at is None else at + 1)


def _same_numbers(before, now):
    import numpy as np

    if now is None or before is None:
        return None
    return now if isinstance(before, tuple) or np.array_equal(before, now) else None


def _take(walk, step) -> None:
    pops = step.kind == "TensorListPopBack"
    known = _changed(walk, step) if pops else walk.lists.get(step.ids[0])
    out = step.outputs[1 if pops else 0]
    if known is None:
        walk.result(step, out, shared=None)
        return
    if known.element is not None and walk.facts.shape_of(out) is None:
        walk.facts.shapes[out.id] = known.element
    if known.numbers is not None and not isinstance(known.numbers, tuple):
        walk.facts.give(out.tensor, known.numbers.shape, known.numbers)
    if pops and known.length:
        known.length -= 1
    last = known.kept[-1] if known.kept else None
    if last is not None and walk.uses[out.id]:
        walk.share_holding(last.holding, out)
    elif last is None:  # of what was never put in: zeros
        walk.result(step, out)
    if pops and known.kept:
        known.kept.pop()


def _stack(walk, step) -> None:
    known, out = walk.lists.get(step.ids[0]), step.outputs[0]
    if known is not None and known.length is not None:
        element = known.element or _element(walk.facts.numbers(step.inputs[1]))
        if element is not None and walk.facts.shape_of(out) is None:
            whole = step.kind == "TensorListStack"
            shape = (
                (known.length, *element) if whole else (known.length * element[0], *element[1:]) if element else None
            )
            if shape is not None:
                walk.facts.shapes[out.id] = shape
        for lengths in step.outputs[1:]:
            walk.facts.shapes[lengths.id] = (known.length,)
    for each in step.outputs:
        walk.result(step, each)


def _unstack(walk, step) -> None:
    shape = walk.facts.shape(step.inputs[0])
    length, element = (shape[0], shape[1:]) if shape else (None, None)
    holding = walk.holding_of(step.inputs[0])
    kept = [KeptTensor(walk.session, holding)] if holding is not None else []
    walk.lists[step.outputs[0].id] = TensorList(length, element, kept, step.inputs[0].dtype.size or 0)


def _made_alike(walk, step) -> None:
    """A list of as many new tensors of the same sizes: where a gradient of a list begins, or two are added."""
    like = walk.lists[step.ids[0]]
    made = walk.lists[step.outputs[0].id] = TensorList(like.length, like.element, (), like.itemsize, None)
    size = like.bytes_each()
    if like.length is None and (like.kept or like.zeros or size):
        walk.outcome.unknown.append(f"{step.name}, {step.kind}")
        return
    count = like.length if like.length and size else 0
    made.zeros_each = max(1, -(-count // _MOST_PIECES))
    while count > 0:
        each = min(count, made.zeros_each)
        count -= each
        holding = walk.take(size * each, (size * each,), "byte", step)
        made.zeros.append(KeptTensor(walk.session, holding))
        holding.let_go(walk.session)


def _length(walk, step) -> None:
    import numpy as np

    known = walk.lists.get(step.ids[0])
    if known is not None and known.length is not None:
        walk.facts.give(step.outputs[0].tensor, (), np.array(known.length, np.int32))


def _shape(walk, step) -> None:
    import numpy as np

    known, out = walk.lists.get(step.ids[0]), step.outputs[0]
    if known is not None and known.element is not None:
        walk.facts.give(out.tensor, (len(known.element),), np.array(known.element, out.dtype.as_numpy_dtype))


def _resized(walk, step) -> None:
    known = _changed(walk, step)
    if known is not None:
        known.length = _size(walk.facts.numbers(step.inputs[1]))


_HANDLES = {
    **dict.fromkeys(("EmptyTensorList", "TensorListReserve"), _begin),
    **dict.fromkeys(("TensorListPushBack", "TensorListSetItem"), _put),
    **dict.fromkeys(("TensorListPopBack", "TensorListGetItem"), _take),
    **dict.fromkeys(("TensorListStack", "TensorListConcat", "TensorListConcatV2"), _stack),
    **dict.fromkeys(("TensorListFromTensor",), _unstack),
    "TensorListLength": _length,
    "TensorListElementShape": _shape,
    "TensorListResize": _resized,
}
