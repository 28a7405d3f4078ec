"""Tensors on the planned GPU: plain torch.Tensor objects whose device is cuda:0 and whose storage has a size but no bytes.

They are made the way PyTorch makes wrapper tensors, then given to a plain tensor through `.data`, so type(t) is torch.Tensor, parameters keep
their identity when a module moves, and every check in PyTorch's own Python code sees what it would see on a GPU. No kernel may ever run on one:
the dispatch mode (mode.py) answers every operation before a kernel is looked up.
"""
from __future__ import annotations

import torch

CUDA = torch.device("cuda", 0)
META = torch.device("meta")
_wrapper = torch.Tensor._make_wrapper_subclass
_set_version = torch._C._autograd._unsafe_set_version_counter


class _Maker(torch.Tensor):
    """Only its birth matters; what is returned is a plain tensor."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._has_compatible_shallow_copy_type.default:
            return True
        raise AssertionError(f"{func} reached a tensor that is still being made")


def _fresh_version(tensor: torch.Tensor) -> torch.Tensor:
    _set_version((tensor,), (0,))
    return tensor


def make(size, stride, dtype: torch.dtype, storage_bytes: int | None = None) -> torch.Tensor:
    """A tensor with a storage of its own."""
    tensor = torch.empty(0, dtype=dtype)
    if storage_bytes is None:
        tensor.data = _wrapper(_Maker, size, stride, 0, dtype=dtype, device=CUDA)
    else:
        tensor.data = _wrapper(_Maker, size, stride, 0, dtype=dtype, device=CUDA, storage_size=storage_bytes)
    return _fresh_version(tensor)


def alias(base: torch.Tensor, size, stride, offset: int) -> torch.Tensor:
    """Another tensor on the storage of base."""
    tensor = torch.empty(0, dtype=base.dtype)
    tensor.data = base
    if tensor.size() != size or tensor.stride() != stride or tensor.storage_offset() != offset:
        tensor.as_strided_(size, stride, offset)
    return _fresh_version(tensor)


def reshape_in_place(tensor: torch.Tensor, size, stride, offset: int) -> None:
    """For operations that change the metadata of the tensor they are given (t_, squeeze_, resize_ that does not grow)."""
    version = tensor._version
    tensor.as_strided_(size, stride, offset)
    _set_version((tensor,), (version,))


def replace(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Gives `tensor` the storage and shape of `other` (resize_ that grows, set_)."""
    version = tensor._version
    tensor.data = other
    _set_version((tensor,), (version,))


def on_meta(tensor: torch.Tensor) -> torch.Tensor:
    """A meta tensor of the same layout, for asking PyTorch what an operation would give."""
    offset = tensor.storage_offset()
    if offset == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=META)
    whole = torch.empty(tensor.untyped_storage().nbytes() // tensor.dtype.itemsize, dtype=tensor.dtype, device=META)
    return whole.as_strided(tensor.size(), tensor.stride(), offset)
