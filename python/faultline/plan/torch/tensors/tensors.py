"""Tensors on the planned GPU: plain torch.Tensor objects whose device is cuda and whose storage has a size but no bytes.

They are made the way PyTorch makes wrapper tensors, then given to a plain tensor through `.data`, so type(t) is torch.Tensor, parameters keep
their identity when a module moves, and every check in PyTorch's own Python code sees what it would see on a GPU. No kernel may ever run on one:
the dispatch mode (dispatch_mode.py) answers every operation before a kernel is looked up.
"""

from __future__ import annotations

import ctypes

import torch

from ..release.older_torch import set_version
from . import places

META = torch.device("meta")
_wrapper = torch.Tensor._make_wrapper_subclass


class Maker(torch.Tensor):
    """Only its birth matters; what is returned is a plain tensor."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten._has_compatible_shallow_copy_type.default:
            return True
        raise AssertionError(f"{func} reached a tensor that is still being made")


try:
    _wrapper(Maker, (1,), (1,), 0, dtype=torch.float32, device=META, storage_size=4)
    _takes_storage_size = True
except TypeError:
    _takes_storage_size = False


def _with_storage(kind, size, stride, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """With a storage as large as its shape and strides say."""
    if _takes_storage_size:
        return _wrapper(kind, size, stride, 0, dtype=dtype, device=device)
    return _wrapper(kind, tuple(size), strides=tuple(stride), storage_offset=0, dtype=dtype, device=device)


def _fresh_version(tensor: torch.Tensor) -> torch.Tensor:
    if not torch.is_inference_mode_enabled():
        set_version(tensor, 0)
    return tensor


class _KeepVersion:
    """What happens to the tensor inside is not a change of its values (tensors of inference mode have no versions)."""

    def __init__(self, tensor: torch.Tensor):
        self._tensor = tensor
        self._version = None if tensor.is_inference() or torch.is_inference_mode_enabled() else tensor._version

    def __enter__(self):
        return self

    def __exit__(self, *_problem):
        if self._version is not None:
            set_version(self._tensor, self._version)


def make(
    size, stride, dtype: torch.dtype, storage_bytes: int | None = None, device: torch.device | None = None
) -> torch.Tensor:
    """A tensor with a storage of its own, on the GPU of the operation that runs."""
    device = device or places.device()
    tensor = torch.empty(0, dtype=dtype, device="cpu")  # the program may have chosen another default
    if storage_bytes is None:
        tensor.data = _with_storage(Maker, size, stride, dtype, device)
    elif _takes_storage_size:
        tensor.data = _wrapper(Maker, size, stride, 0, dtype=dtype, device=device, storage_size=storage_bytes)
    else:
        tensor.data = _with_storage(Maker, (storage_bytes // dtype.itemsize,), (1,), dtype, device)
        tensor.as_strided_(size, stride, 0)
    return _fresh_version(tensor)


def immortal_on(index: int) -> torch.Tensor:
    """A tensor without elements on the GPU of that number, which need not exist. C++ keeps it as the gradient of another that is never freed, so
    no thread that lets go of it needs the GIL."""
    device = torch.device("cuda", index)
    keeper = make((0,), (1,), torch.float32, device=device)
    keeper.grad = make((0,), (1,), torch.float32, device=device)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(keeper))
    return keeper.grad


def alias(base: torch.Tensor, size, stride, offset: int) -> torch.Tensor:
    """Another tensor on the storage of base."""
    tensor = torch.empty(0, dtype=base.dtype, device="cpu")
    tensor.data = base
    if tensor.size() != size or tensor.stride() != stride or tensor.storage_offset() != offset:
        tensor.as_strided_(size, stride, offset)
    return _fresh_version(tensor)


def reshape_in_place(tensor: torch.Tensor, size, stride, offset: int) -> None:
    """For operations that change the metadata of the tensor they are given (t_, squeeze_, resize_ that does not grow)."""
    with _KeepVersion(tensor):
        tensor.as_strided_(size, stride, offset)


def replace(tensor: torch.Tensor, other: torch.Tensor) -> None:
    """Gives `tensor` the storage and shape of `other` (resize_ that grows, set_)."""
    with _KeepVersion(tensor):
        tensor.data = other


def on_meta(tensor: torch.Tensor, whole_storage: bool = False) -> torch.Tensor:
    """A meta tensor of the same layout, for asking PyTorch what an operation would give; with the whole storage where it may reach beyond."""
    offset = tensor.storage_offset()
    if offset == 0 and not whole_storage:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=META)
    whole = torch.empty(tensor.untyped_storage().nbytes() // tensor.dtype.itemsize, dtype=tensor.dtype, device=META)
    return whole.as_strided(tensor.size(), tensor.stride(), offset)


def contiguous_stride(size) -> tuple[int, ...]:
    return torch.empty(size, device=META).stride()


def is_dense(tensor: torch.Tensor) -> bool:
    """Every element of the storage's stretch belongs to exactly one place of the tensor, in some order of the dimensions."""
    expected = 1
    for stride, size in sorted((stride, size) for size, stride in zip(tensor.shape, tensor.stride()) if size != 1):
        if stride != expected:
            return 0 in tensor.shape
        expected *= size
    return True


def is_channels_last(tensor: torch.Tensor) -> bool:
    """By its strides, channels lie innermost (PyTorch's own rule, which decides for sizes of one too)."""
    sizes, strides = tensor.size(), tensor.stride()
    order = {4: (1, 3, 2, 0), 5: (1, 4, 3, 2, 0)}.get(len(sizes))
    if order is None or strides[1] == 0:
        return False
    least = 0
    for dimension in order:
        if sizes[dimension] == 0 or strides[dimension] < least or dimension == 0 and least == strides[1]:
            return False
        least = strides[dimension] * max(1, sizes[dimension])
    return True


def count_as_changed(written) -> None:
    """What writes into a list of tensors counts them as changed in its kernel for the GPU; of what writes into one PyTorch counts it for every device."""
    for tensor in written:
        if not tensor.is_inference():
            torch.autograd.graph.increment_version(tensor)
