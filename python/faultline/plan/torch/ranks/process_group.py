"""A process group of many ranks of which only one runs: nothing is moved, and every other rank is taken to have what this one has.

It is a torch.distributed.ProcessGroup of Python, so that C++ (the reducer of DistributedDataParallel) calls it too. What NCCL's own group takes from
PyTorch's allocator beside the results is taken here as well; what NCCL takes from the driver is not (docs/plan-ranks.md).
"""

from __future__ import annotations

import datetime
import sys

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroup, _create_work_from_future

from ...session.unplannable import Unplannable

Tensor = torch.Tensor
_SHAPE = 8  # whole numbers at most that are taken for one
_NO_COLLECTIVES = ("boxed", "unbox", "get_group_store", "use_pg_for_symm_mem_rendezvous")


def _flat(tensors) -> list[Tensor]:
    return [t for part in tensors for t in (part if isinstance(part, (list, tuple)) else (part,))]


def finished(tensors):
    """The work of a collective that is done: its future holds the tensors."""
    places = sorted({t.get_device() for t in _flat(tensors) if t.is_cuda})
    future = (
        torch.futures.Future(devices=[torch.device("cuda", place) for place in places])
        if places
        else torch.futures.Future()
    )
    future.set_result(list(tensors))
    return _create_work_from_future(future)


def reduced(tensor: Tensor, operation, size: int) -> None:
    """The tensor as it is after a reduction over ranks that all have the same."""
    name = str(getattr(operation, "op", operation)).rpartition(".")[2].lower()
    if size == 1 or name in ("avg", "max", "min", "band", "bor") or name.startswith("premul"):
        return
    if name == "sum":
        tensor.mul_(size)
    elif name == "product":
        tensor.pow_(size)
    elif name == "bxor" and size % 2 == 0:
        tensor.zero_()


def gathered(output: Tensor, given: Tensor, size: int) -> None:
    """One tensor that holds what each of the ranks has."""
    if given.numel():
        output.view(size, given.numel()).copy_(given.reshape(1, -1).expand(size, -1))


def scattered(output: Tensor, given: Tensor, rank: int, operation=None, size: int = 1) -> None:
    if output.numel():
        output.view(-1).copy_(given.view(-1).narrow(0, rank * output.numel(), output.numel()))
        if operation is not None:
            reduced(output, operation, size)


class Options:
    """What programs set in ProcessGroupNCCL.Options where PyTorch was built without NCCL."""

    def __init__(self, *_args, **fields):
        self.config = type("Config", (), {})()
        self.is_high_priority_stream, self._timeout = False, datetime.timedelta(minutes=10)
        self.__dict__.update(fields)


class OneRanksGroup(ProcessGroup):
    """The group, of which one rank is here. `kind` is the backend that the program named."""

    supports_splitting = supports_coalescing = supports_time_estimate = False
    options = Options()

    def __init__(self, rank: int, size: int, kind: str, watch):
        super().__init__(rank, size)
        self._rank, self._size, self._kind, self._watch = rank, size, kind, watch
        self._sequence = 0
        self._names = ["", ""]  # its name and its description

    # --- what it is

    def getBackendName(self):
        return self._kind

    def name(self):
        return self._kind

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def getRank(self):
        return self._rank

    def getSize(self):
        return self._size

    def getGroupName(self):
        return self._names[0]

    def getGroupDesc(self):
        return self._names[1]

    def setGroupDesc(self, text):
        self._names[1] = text

    def setGroupName(self, name):
        self._names[0] = name
        self._watch.group(self)

    group_name, group_desc = property(getGroupName), property(getGroupDesc)
    _set_group_name, _set_group_desc = setGroupName, setGroupDesc

    def _get_backend(self, _device):
        return self

    def _get_backend_name(self):
        return self._kind

    def _set_default_backend(self, _backend):
        pass

    def _has_hooks(self):
        return False

    def _register_on_completion_hook(self, _hook):
        pass

    def _enable_collectives_timing(self):
        pass

    def _wait_for_pending_works(self):
        pass

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return self._sequence

    def set_timeout(self, _timeout):
        pass

    def _set_default_timeout(self, _timeout):
        pass

    def abort(self):
        pass

    def shutdown(self):
        pass

    def eager_connect_single_device(self, _device):
        pass

    def perform_nocolor_split(self, _device):
        pass

    @property
    def _device_types(self):
        return [torch.device(kind) for kind in ("cpu", "cuda") if self._serves(kind)]

    def _serves(self, kind: str) -> bool:
        return kind in self._kind if ":" in self._kind else kind == "cuda" or self._kind != "nccl"

    def _done(self, tensors, kind: str = ""):
        """After a collective, whose method calls this: NCCL makes a communicator at the first one on the GPU."""
        self._sequence += 1
        kind = kind or sys._getframe(1).f_code.co_name
        self._watch.collective(self, kind)
        for tensor in _flat(tensors):
            if tensor.is_cuda:
                self._watch.communicator(self, kind)
            elif not self._serves("cpu"):
                raise RuntimeError("No backend type associated with device type cpu")
        return finished(tensors)

    # --- collectives

    def allreduce(self, tensors, opts=None):
        for tensor in tensors:
            reduced(tensor, getattr(opts, "reduceOp", "sum"), self._size)
        return self._done(tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, opts=None):
        if getattr(opts, "rootRank", 0) == self._rank:
            for tensor in tensors:
                reduced(tensor, getattr(opts, "reduceOp", "sum"), self._size)
        return self._done(tensors)

    def broadcast(self, tensors, opts=None):
        self._watch.tell(self, tensors, getattr(opts, "rootRank", 0))
        return self._done(tensors)

    def allgather(self, outputs, inputs, opts=None):
        for into, given in zip(outputs, inputs):
            flat = self._flattened(into)
            for output in into:
                if output.size() == given.size():
                    output.copy_(given)
            del flat
        return self._done(outputs)

    @staticmethod
    def _flattened(tensors):
        """NCCL's group gathers into, and scatters from, one buffer where the parts are of one size."""
        if tensors and tensors[0].is_cuda and all(t.size() == tensors[0].size() for t in tensors):
            return torch.empty((len(tensors), *tensors[0].size()), dtype=tensors[0].dtype, device=tensors[0].device)
        return None

    def allgather_coalesced(self, outputs, inputs, opts=None):
        for into in outputs:
            for output, given in zip(into, inputs):
                output.copy_(given)
        return self._done(outputs)

    def _allgather_base(self, output, given, opts=None):
        gathered(output, given, self._size)
        return self._done([output])

    all_gather_single = _allgather_base

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        for output, given in zip(outputs, inputs):
            gathered(output, given, self._size)
        return self._done(outputs)

    all_gather_single_coalesced = allgather_into_tensor_coalesced

    def reduce_scatter(self, outputs, inputs, opts=None):
        for output, given in zip(outputs, inputs):
            flat = self._flattened(given)
            output.copy_(given[self._rank])
            reduced(output, getattr(opts, "reduceOp", "sum"), self._size)
            del flat
        return self._done(outputs)

    def _reduce_scatter_base(self, output, given, opts=None):
        scattered(output, given, self._rank, getattr(opts, "reduceOp", "sum"), self._size)
        return self._done([output])

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts=None):
        for output, given in zip(outputs, inputs):
            scattered(output, given, self._rank, getattr(opts, "reduceOp", "sum"), self._size)
        return self._done(outputs)

    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def gather(self, outputs, inputs, opts=None):
        for into, given in zip(outputs, inputs):
            for output in into:
                output.copy_(given)
        return self._done(inputs)

    def scatter(self, outputs, inputs, opts=None):
        for output, given in zip(outputs, inputs):
            output.copy_(given[self._rank])
        if not inputs:
            self._watch.unknown(outputs, "scatter()")
        return self._done(outputs)

    def alltoall(self, outputs, inputs, opts=None):
        for output, given in zip(outputs, inputs):
            if output.size() == given.size():
                output.copy_(given)
        return self._done(outputs)

    def alltoall_base(self, output, given, output_sizes=(), input_sizes=(), opts=None):
        if output.size() == given.size():
            output.copy_(given)
        return self._done([output])

    all_to_all_single = alltoall_base

    def barrier(self, opts=None):
        """On the GPU it is a reduction of one number."""
        return self._done([torch.empty(1, device="cuda")] if "nccl" in self._kind else [])

    def monitored_barrier(self, *_args, **_options):
        return None

    # --- between two ranks

    def send(self, tensors, rank, tag=0):
        return self._done(tensors)

    def recv(self, tensors, rank, tag=0):
        for tensor in tensors:
            if tensor.dtype in (torch.int32, torch.int64) and tensor.dim() <= 1 and 0 < tensor.numel() <= _SHAPE:
                sender = "another rank" if rank < 0 else f"rank {rank} of its group"
                raise Unplannable(
                    f"recv() takes {tensor.numel()} whole number{'s' * (tensor.numel() > 1)} from {sender}, as a stage of a pipeline that is told a shape: they are not known here, and neither is what is made by them. Give the shape to each stage by its own settings to plan it"
                )
        self._watch.unknown(tensors, "recv()")
        return self._done(tensors)

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, -1, tag)

    def _start_coalescing(self, _device):
        pass

    def _end_coalescing(self, _device):
        return finished([])

    # --- groups made of it

    def split_group(self, ranks, *args, **options):
        raise Unplannable("split_group() is not known to a dry run: new_group() with the same ranks is")

    def merge_remote_group(self, *_args, **_options):
        raise Unplannable("merge_remote_group() is not known to a dry run")


class Store(dist.Store):
    """A store of one rank: what others would write is taken from what the first left behind, and nobody is waited for."""

    watch = None  # set when the dry run begins

    def __init__(self, *_args, **_options):
        super().__init__()
        self._values: dict[str, bytes] = {}

    def set(self, key, value):
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)
        self.watch.shared.put(f"store {key}", self._values[key])

    def get(self, key):
        value = self._values.get(key)
        if value is None:
            value = self.watch.shared.await_from(0, f"store {key}")
        if value is None:
            raise Unplannable(f"the store's key '{key}' is set by a rank that is not run")
        return value

    def add(self, key, amount):
        """All ranks have added as much."""
        self._values[key] = str(int(self._values.get(key, b"0")) + amount * (self.watch.world or 1)).encode()
        return int(self._values[key])

    def compare_set(self, key, expected, desired):
        if self._values.get(key, b"") in (b"", expected.encode() if isinstance(expected, str) else expected):
            self.set(key, desired)
        return self._values[key]

    def wait(self, *_args):
        pass

    def check(self, _keys):
        return True

    def num_keys(self):
        return len(self._values)

    def delete_key(self, key):
        return self._values.pop(key, None) is not None

    def set_timeout(self, _timeout):
        pass

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        [self.set(key, value) for key, value in zip(keys, values)]

    def has_extended_api(self):
        return False

    def append(self, key, value):
        self.set(key, self._values.get(key, b"") + (value.encode() if isinstance(value, str) else value))


class TCPStore(Store):
    def __init__(self, host_name="localhost", port=0, *_args, **_options):
        super().__init__()
        self.host, self.port, self.libuvBackend = host_name, port or 29500, True


class FileStore(Store):
    def __init__(self, file_name="", *_args, **_options):
        super().__init__()
        self.path = file_name


class HashStore(Store):
    pass


def _refuse_the_unknown() -> None:
    """A collective that is not here would look for a backend, of which there is none."""

    def refusing(name):
        def unknown(_self, *_args, **_options):
            raise Unplannable(f"ProcessGroup.{name}() is not known to a dry run")

        return unknown

    for name, member in vars(ProcessGroup).items():
        if (
            not name.startswith("_")
            and name not in vars(OneRanksGroup)
            and callable(member)
            and not isinstance(member, type)
            and name not in _NO_COLLECTIVES
        ):
            setattr(OneRanksGroup, name, refusing(name))


_refuse_the_unknown()
