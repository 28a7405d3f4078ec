"""Lists with tensors of the GPU in them, of which `torch.tensor([loss_a, loss_b])` makes one: PyTorch reads each of them below the operations that a dry run sees."""

from __future__ import annotations

import functools

import torch

from ...session.session import current


def types_in(data) -> list[torch.dtype]:
    """Those of the numbers in nested lists; none: no tensor of the GPU is among them."""
    kinds: dict[torch.dtype, None] = {}
    return list(kinds) if _gather(data, kinds) else []


def _gather(data, kinds: dict) -> bool:
    found = False
    for value in data:
        if isinstance(value, (list, tuple)):
            found |= _gather(value, kinds)
        elif isinstance(value, torch.Tensor):
            kinds[value.dtype] = None
            found |= value.is_cuda
        else:
            kinds[_type_of(value)] = None
    return found


def _type_of(number) -> torch.dtype:
    if isinstance(number, bool):
        return torch.bool
    if isinstance(number, int):
        return torch.int64
    return torch.as_tensor(number, device="cpu").dtype if not isinstance(number, float) else torch.get_default_dtype()


def common_type(kinds: list[torch.dtype]) -> torch.dtype:
    return functools.reduce(torch.promote_types, kinds)


def numbers(data):
    """The same lists with each tensor of the GPU read. What is read becomes a tensor again: it decides nothing here."""
    if isinstance(data, (list, tuple)):
        return [numbers(value) for value in data]
    if not isinstance(data, torch.Tensor) or not data.is_cuda:
        return data
    if data.numel() != 1:
        return data.item()  # in PyTorch's words
    return current().values.read(data)[0].item()
