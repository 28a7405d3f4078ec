"""The words that every kernel model speaks.

A model answers "which blocks does this operation take, in which order" as a list of steps: OUT (the results are
allocated here, once), a positive number (a temporary of that many bytes is taken), a negative number -k (the k-th
temporary, counted from 1, is returned) or an Estimated of 0 (a temporary that is likely not taken). A size may be an Estimated. What is not returned explicitly is returned when the operation ends.

Models register themselves by operation name with @kernel("sum", "mean"); temporaries.py looks them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product  # noqa: F401  (a word of the models, too)
from typing import Any

import torch

from ...session.estimates import Estimated, may_be_taken
from ..tensors import tensors
from ..tensors.tensors import is_dense  # noqa: F401  (likewise)

OUT = "out"

Step = Any  # OUT or int
Model = Callable[["Call"], "list[Step] | None"]

models: dict[str, Model] = {}
Sizes = Callable[["Call"], "dict[int, int] | None"]
output_models: dict[str, Sizes] = {}
storage_models: dict[str, Sizes] = {}


def _registers(into: dict) -> Callable:
    """A decorator that takes names of ATen operations, all overloads of each."""

    def named(*names: str) -> Callable:
        def keep(model: Callable) -> Callable:
            into.update(("aten::" + name, model) for name in names)
            return model

        return keep

    return named


kernel = _registers(models)
true_outputs = _registers(
    output_models
)  # knows the byte sizes of auxiliary results whose meta kernel reports them wrong
kept_storage = _registers(storage_models)  # knows results whose storage is larger than their shape says


class Call:
    """One operation as the dispatcher saw it, with its arguments by name."""

    __slots__ = ("func", "args", "kwargs", "outputs", "gpu", "_names")

    def __init__(self, func: Any, args: Sequence, kwargs: dict, outputs: Sequence[torch.Tensor], gpu: Any) -> None:
        self.func, self.args, self.kwargs, self.outputs, self.gpu = func, args, kwargs, outputs, gpu
        self._names: dict[str, Any] | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if self._names is None:
            arguments = self.func._schema.arguments
            self._names = {a.name: v for a, v in zip(arguments, self.args)}
            self._names.update(self.kwargs)
        if name in self._names:
            return self._names[name]
        return default

    @property
    def overload(self) -> str:
        return self.func._schema.overload_name


class Steps:
    """Collects steps; take() returns the number by which the block is given back."""

    __slots__ = ("list", "taken", "perhaps")

    def __init__(self) -> None:
        self.list: list[Step] = []
        self.taken = 0
        self.perhaps = False  # something may be taken

    def take(self, size_bytes: int) -> int:
        """Takes a block and returns its number; an empty block takes nothing (0). An Estimated that is 0 and may be more is a step without a number."""
        if may_be_taken(size_bytes):
            self.list.append(size_bytes)
            self.perhaps = True
        if size_bytes <= 0:
            return 0
        self.list.append(size_bytes if isinstance(size_bytes, Estimated) else int(size_bytes))
        self.taken += 1
        return self.taken

    def copy_unless_contiguous(self, *tensors: torch.Tensor) -> None:
        """Kernels that read memory in order copy what does not lie so."""
        for tensor in tensors:
            if not tensor.is_contiguous():
                self.take(nbytes(tensor))

    def give(self, *numbers: int) -> None:
        for number in numbers:
            if number:
                self.list.append(-number)

    def out(self) -> "Steps":
        self.list.append(OUT)
        return self

    def done(self) -> list[Step] | None:
        """None when nothing beside the results was taken."""
        return self.list if self.taken or self.perhaps else None


def beside_result(size_bytes: int) -> list[Step] | None:
    """One block, taken after the result."""
    steps = Steps().out()
    steps.take(size_bytes)
    return steps.done()


def nbytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, multiple: int) -> int:
    return -(-a // multiple) * multiple


def wrap(dim: int, ndim: int) -> int:
    return dim + ndim if dim < 0 else dim


def is_low_precision(dtype: torch.dtype) -> bool:
    return dtype in (torch.float16, torch.bfloat16)


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Laid out so and not contiguous too: kernels take ambiguous strides as contiguous."""
    return not tensor.is_contiguous() and tensors.is_channels_last(tensor)
