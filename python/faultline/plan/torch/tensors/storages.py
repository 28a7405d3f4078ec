"""Storages of the planned GPU where a program, or PyTorch's own Python code, handles them without a tensor: deepcopy of a buffer, torch.load, set_()."""

from __future__ import annotations

import ctypes
import functools

import torch
from torch.utils._python_dispatch import _disable_current_modes

from . import places, tensors

_set = torch.ops.aten.set_.source_Storage_storage_offset


def put(tensor: torch.Tensor, storage: torch.UntypedStorage, offset: int, size, stride) -> torch.Tensor:
    """Makes tensor, of the GPU, show this storage. The kernel for meta tensors changes nothing but the tensor's own fields."""
    with _disable_current_modes():
        _set._op_dk(torch._C.DispatchKey.Meta, tensor, storage, offset, size, stride)
    return tensor


def whole(storage: torch.UntypedStorage) -> torch.Tensor:
    """All bytes of a storage as a tensor."""
    if storage.device.type != "cuda":
        return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return put(tensors.make((0,), (1,), torch.uint8, device=storage.device), storage, 0, (storage.nbytes(),), (1,))


def _copied(storage, device: torch.device, non_blocking: bool = False):
    fresh = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device)
    fresh.copy_(whole(storage), non_blocking)
    return fresh.untyped_storage()


def install(host, memory) -> None:
    kind = torch.UntypedStorage
    clone, cpu, to, copy_, resized = (
        kind.clone,
        kind.cpu,
        getattr(kind, "to", None),
        kind.copy_,
        kind.resize_,
    )  # the third since 2.4

    def moved(storage, *, device, non_blocking=False):
        device = torch.device(device)
        if "cuda" not in (device.type, storage.device.type):
            return to(storage, device=device, non_blocking=non_blocking)
        return (
            storage
            if device == storage.device
            or device.type == "cuda"
            and device.index is None
            and storage.device.type == "cuda"
            else _copied(storage, device, non_blocking)
        )

    def copy_into(storage, source, non_blocking=None):
        if "cuda" not in (storage.device.type, source.device.type):
            return copy_(storage, source, non_blocking)
        whole(storage).copy_(whole(source), bool(non_blocking))
        return storage

    kind.clone = lambda storage: (
        _copied(storage, storage.device) if storage.device.type == "cuda" else host.like(storage, clone(storage))
    )
    kind.cpu = lambda storage: _copied(storage, torch.device("cpu")) if storage.device.type == "cuda" else cpu(storage)
    kind.cuda = lambda storage, device=None, non_blocking=False: moved(
        storage, device=torch.device("cuda", places.of(device)), non_blocking=non_blocking
    )
    kind.copy_ = copy_into
    if to is not None:
        kind.to = moved
    kind.resize_ = lambda storage, size: (
        resize(memory, storage, size) if storage.device.type == "cuda" else resized(storage, size),
        storage,
    )[1]
    _fill_what_escapes(host)


def _fill_what_escapes(host) -> None:
    """Ways to a host tensor's bytes that go around the dispatch mode."""

    def filling(original, storage_of):
        @functools.wraps(original)
        def faultline(self, *args, **kwargs):
            if self.device.type == "cpu" and (
                isinstance(self, torch.UntypedStorage) or self.layout is torch.strided and not self.is_nested
            ):
                host.fill(storage_of(self))
            return original(self, *args, **kwargs)

        return faultline

    for name in ("numpy", "tolist", "data_ptr", "__dlpack__", "share_memory_"):
        setattr(torch.Tensor, name, filling(getattr(torch.Tensor, name), torch.Tensor.untyped_storage))
    for name in ("data_ptr", "tolist", "share_memory_", "_share_fd_cpu_", "_share_filename_cpu_"):
        if hasattr(torch.UntypedStorage, name):
            setattr(torch.UntypedStorage, name, filling(getattr(torch.UntypedStorage, name), lambda storage: storage))


@functools.lru_cache(maxsize=None)
def _place_of_size() -> int:
    """Where C++ keeps a storage's size, in bytes from its beginning: looked for with sizes that occur nowhere else."""
    found = None
    for size in (0x1234567890, 0x2345678901):
        storage = tensors.make((0,), (1,), torch.uint8, size).untyped_storage()
        words = (ctypes.c_int64 * 16).from_address(storage._cdata)
        at = {index for index, word in enumerate(words) if word == size}
        found = at if found is None else found & at
    if len(found) != 1:
        raise RuntimeError("a storage of this PyTorch is not laid out as a dry run knows: its size cannot be changed")
    return found.pop() * 8


def resize(memory, storage: torch.UntypedStorage, size_bytes: int) -> None:
    """Gives the block of a storage back, or takes one: as FSDP does for what it gathers. What was in it is not kept where it was given back."""
    record = memory.records.get(storage._cdata)
    ctypes.c_int64.from_address(storage._cdata + _place_of_size()).value = size_bytes
    if record is None:
        return
    if size_bytes:
        with places.running(storage.device.index):
            allocation, address = memory.take(size_bytes, memory.stacks.here(), record.tensor)
    else:
        allocation = address = 0
    if record.allocation:
        memory.device.free(record.allocation, memory.stacks.here())
    record.allocation, record.address, record.size_bytes, record.shadow = allocation, address, size_bytes, None
