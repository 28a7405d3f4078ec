"""What an operation is given and gives, as the parts of the dry run pass it among themselves."""

from __future__ import annotations

import torch

from ..tensors.naming import op_name, operands_text

Tensor = torch.Tensor


class Outcome:
    """What an operation gives for operands of a certain look. Leaves of the result, in order:
    ("same", i) is operand i itself, ("view", i, size, stride, offset) shares its storage, ("new", size, stride, dtype, bytes), ("unseen", …) the same but not on the GPU, ("value", v)."""

    __slots__ = ("leaves", "shape", "changed", "steps", "workspaces", "operands", "op", "mutated", "order", "stand_ins")

    def __init__(self, leaves, shape, changed, mutated):
        self.leaves, self.shape, self.changed, self.mutated = leaves, shape, changed, mutated
        self.steps = self.workspaces = self.order = None
        self.operands = self.op = ""
        self.stand_ins: dict = {}  # those of the operands → that of the results

    @classmethod
    def named(cls, func, operands) -> Outcome:
        """Of an operation whose results are made by hand: only its name and operands are told."""
        outcome = cls((), None, (), ())
        outcome.op, outcome.operands = op_name(func), operands_text(operands)
        return outcome


def flatten(args, kwargs) -> list[Tensor]:
    """The operands, in the order in which replace_tensors meets them."""
    found = []
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [v for v in value if isinstance(v, Tensor)]
    return found


def replace_tensors(args, kwargs, swap):
    """The same arguments with swap(tensor) in the place of each tensor."""
    return tuple(_swapped(a, swap) for a in args), {k: _swapped(v, swap) for k, v in kwargs.items()}


def _swapped(value, swap):
    if isinstance(value, Tensor):
        return swap(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_swapped(v, swap) for v in value) if not isinstance(value, torch.Size) else value
    return value
