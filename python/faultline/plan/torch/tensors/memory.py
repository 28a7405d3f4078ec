"""Which storages live on the planned GPU, and what each of them is.

A storage is followed by a weak reference to its Python object: PyTorch keeps that object as long as C++ holds the storage (a tensor saved for
backward included), so its death is the moment at which a GPU's block would be returned.
"""

from __future__ import annotations

import threading

import torch

from ....common.stacks import Stacks
from ...session.device import HEAP_TORCH, Device, OutOfMemory
from ...session.estimates import Estimated
from ..release.older_torch import OutOfMemoryError, StorageRef, notice_deaths
from . import loose_sizes, places

storage_id = torch._C._storage_id
_is_wrapped = (
    torch._C._functorch.is_functorch_wrapped_tensor
)  # by vmap, grad and their kin: it has no storage of its own


class Record(StorageRef):
    """One storage on the GPU."""

    __slots__ = (
        "key",
        "allocation",
        "address",
        "size_bytes",
        "shadow",
        "assumed",
        "stand_in",
        "share",
        "choice",
        "which",
        "most",
        "extremes",
        "chosen",
        "total",
        "loose",
        "unset",
        "stack",
        "tensor",
        "kept",
        "last_of_call",
        "made_in_call",
        "is_cache",
    )

    def __new__(cls, storage, callback, *_):
        return super().__new__(cls, storage, callback)

    def __init__(
        self, storage, callback, key: int, allocation: int, address: int, size_bytes: int, stack: int, tensor: int
    ):
        super().__init__(storage, callback)
        self.key, self.allocation, self.address, self.size_bytes = key, allocation, address, size_bytes
        self.stack, self.tensor = stack, tensor
        self.shadow = None  # a host storage with the same bytes, where they are known
        self.assumed = False  # the shadow's values are stand-ins, or follow from some
        self.stand_in = None  # what one element reads as where there is no shadow; None: the usual
        self.share = self.choice = self.which = None  # of unknown values: see shares.py
        self.most = None  # what unknown whole numbers are at most: see ranges.py
        self.extremes = None  # the least and the largest of all of them, where that is sure: see indices.py
        self.chosen = None  # how many of its elements are nonzero at most: see chosen.py
        self.total = None  # what they come to at most
        self.loose = None  # values decide how many rows it has: see loose_sizes.py
        self.unset = False  # nobody has written it (torch.empty), or it follows from what nobody has
        self.kept = None  # another storage that must live as long as this one
        self.last_of_call = 0  # of the model: one that joined it to others, as the last of them
        self.made_in_call = 0  # of the model, and whether it is a cache of keys and values: see kv_cache.py
        self.is_cache = False


def gib(size_bytes: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:.2f} {name}"
    return f"{size_bytes} bytes"


class _Thread(threading.local):
    streams: list[int] | None = None  # of each GPU, ids of the trace; None: the thread has chosen none


class Memory:
    def __init__(self, device: Device, stacks: Stacks):
        self.device = device
        self.stacks = stacks
        self.records: dict[int, Record] = {}
        self._thread = _Thread()
        self.backward_streams = None  # of the thread that runs backward: the engine's own threads follow it
        self.heap = HEAP_TORCH
        self.thread_heaps: dict[
            int, list
        ] = {}  # thread → (GPU, heap) of the pools that it allocates from, the last first in force
        self._workspaces: set = set()
        self.workspace_bytes = 0
        self.closed = False
        self.allocations_at_failure = -1  # how many had been served when one last failed
        self._refusals_left = -1  # until the GPU grows; -1: it does not
        self.size_of = None  # function(tensor, stack, bytes) → the bytes it takes, for a remedy
        self.any_loose = False  # a size depended on values
        self.loose = None  # of the operation that runs: sizes of dimensions that may be others
        self.loose_places = ()  # (size, dimension) of those that others have, too
        self.unseen = False  # what is made now is Faultline's own, and not on the device

    @property
    def streams(self) -> list[int]:
        """The thread's current streams, of each GPU one."""
        chosen = self._thread.streams
        if chosen is None and self.backward_streams is not None:
            known = threading._active.get(threading.get_ident())
            if known is None or isinstance(known, threading._DummyThread):  # Python did not start it
                chosen = self.backward_streams
        return chosen or [0] * places.count

    def choose_stream(self, place: int, stream: int) -> None:
        self._thread.streams = [stream if at == place else other for at, other in enumerate(self.streams)]

    def find(self, tensor: torch.Tensor) -> Record | None:
        if not self.records or _is_wrapped(tensor):
            return None
        return self.records.get(storage_id(tensor))

    def _died(self, record: Record) -> None:
        if self.records.get(record.key) is record:
            del self.records[record.key]
        if record.allocation and not self.closed:
            self.device.free(record.allocation, self.stacks.here())
        record.kept = None

    def born(self, tensor: torch.Tensor, stack: int, tensor_number: int, keep=None) -> Record:
        """A new storage. Raises PyTorch's own error when the GPU is full."""
        storage = tensor.untyped_storage()
        size_bytes = 0 if keep is not None or self.unseen else storage.nbytes()
        allocation = address = 0
        if size_bytes and self.size_of is not None:
            size_bytes = self.size_of(tensor, stack, size_bytes)
        loose = None
        if size_bytes:
            size, loose = loose_sizes.of_result(self, tensor, size_bytes) if self.loose else (size_bytes, None)
            allocation, address = self.take(size, stack, tensor_number, is_result=True)
        key = storage_id(tensor)
        record = Record(storage, self._died, key, allocation, address, size_bytes, stack, tensor_number)
        record.loose = loose
        record.kept = keep
        self.records[key] = record
        return record

    def grow_after(self, refusals: int) -> None:
        """So many requests fail as they do on a GPU of its size; then the GPU grows by what is missing."""
        self._refusals_left = refusals
        if refusals == 0:
            self.device.set_overcommit(True)

    def take(self, size_bytes: int, stack: int, tensor_number: int = 0, is_result: bool = False) -> tuple[int, int]:
        if self.unseen:
            return 0, 0
        if self.loose and not is_result:
            size_bytes = loose_sizes.of_temporary(self, size_bytes)
        notice_deaths()
        try:
            place = places.here()
            heap = self.heap if not self.thread_heaps else self._heap_of_thread(place)
            served = self.device.alloc(size_bytes, self.streams[place], heap, stack, tensor_number, place)
            if isinstance(size_bytes, Estimated):
                self.device.estimate(size_bytes, served[0], self.streams[place], stack, place)
            return served
        except OutOfMemory:
            self.allocations_at_failure = self.allocations()
            if self._refusals_left > 0:
                self.grow_after(self._refusals_left - 1)
            raise OutOfMemoryError(self.out_of_memory_text(size_bytes)) from None

    def may_take(self, size: Estimated, stack: int) -> None:
        """A request that is likely not made."""
        if not self.unseen:
            place = places.here()
            self.device.estimate(size, 0, self.streams[place], stack, place)

    def _heap_of_thread(self, place: int) -> int:
        chosen = self.thread_heaps.get(threading.get_ident(), ())
        return next((heap for at, heap in reversed(chosen) if at == place), self.heap)

    def allocations(self) -> int:
        """Served so far, on all GPUs."""
        return sum(self.device.stats(place).allocations for place in range(places.count))

    def workspace(self, key, size_bytes: int, stack: int, tensor_number: int) -> None:
        """Memory that a library takes once for a handle and a stream, and keeps. Each thread has a handle of its own; backward is another thread."""
        place = (key, places.here(), self.streams[places.here()], threading.get_ident())
        if place not in self._workspaces and not self.unseen:
            self.take(size_bytes, stack, tensor_number)
            self._workspaces.add(place)
            self.workspace_bytes += size_bytes

    def forget_workspaces(self) -> None:
        self._workspaces.clear()

    def out_of_memory_text(self, size_bytes: int) -> str:
        place = places.here()
        stats = self.device.stats(place)
        capacity_bytes, context_bytes = self.device.sizes[place]
        unused = stats.reserved_bytes - stats.allocated_bytes
        in_use = context_bytes + stats.reserved_bytes
        return (
            f"CUDA out of memory. Tried to allocate {gib(size_bytes)}. GPU {place} has a total capacity of {gib(capacity_bytes)} of which {gib(stats.device_free_bytes)} is free. "
            f"Including non-PyTorch memory, this process has {gib(in_use)} memory in use. Of the allocated memory {gib(stats.allocated_bytes)} is allocated by PyTorch, and {gib(unused)} "
            "is reserved by PyTorch but unallocated. (A dry run by Faultline: no GPU was used.)"
        )
