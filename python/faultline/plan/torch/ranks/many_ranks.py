"""torch.distributed in a dry run: groups of which this process is one rank, without the others (process_group.py)."""

from __future__ import annotations

import ctypes
import datetime
import functools
import os
import pickle
import sys
import urllib.parse

import torch
import torch.distributed as dist

from ...._import_watch import ImportWatch
from ...session.device import OutOfMemory
from ...session.unplannable import Unplannable
from ..cuda import no_gpu
from ..release.older_torch import OutOfMemoryError
from ..tensors import places
from . import launchers, nccl, process_group, ranks
from .process_group import OneRanksGroup, Store

_BACKEND = "faultline"
_CUDA, _NOBODY = 1, 100  # c10::DeviceType
_TOLD = 1 << 16  # elements of a host tensor whose values the first rank leaves for the others
_RUN_WHOLE = 16  # ranks that the program starts as processes of its own, and may wait for
_SHARES = ("gather", "scatter", "alltoall", "all_to_all")  # a rank has a part of what all have together


class Watch:
    """What the groups of this process tell the plan."""

    def __init__(self, session):
        self._session = session
        self.rank = session.rank
        self._communicators: set = set()
        self._all_to_all: set = set()
        self._taken: dict[int, int] = {}
        self._broadcasts: dict = {}

    @property
    def world(self):
        return self.rank.world

    @property
    def shared(self):
        return self.rank.shared

    def communicator(self, group, kind: str) -> None:
        """A collective on the GPU: the first of a group makes a communicator."""
        if any(part in kind for part in _SHARES) and group._size > 1:
            self._session.remedies.seen.uses.add("sharding")
        if "nccl" not in group._kind:
            return
        gpu = self._session.gpus[places.here()]
        if group.group_name not in self._communicators:
            self._take(nccl.communicator_bytes(gpu, group._size, not self._communicators))
            self._communicators.add(group.group_name)
        if "all" in kind and "to" in kind and group.group_name not in self._all_to_all and group._size > 1:
            self._all_to_all.add(group.group_name)
            self._take(nccl.all_to_all_bytes(group._size))

    def _take(self, size_bytes: int) -> None:
        memory, place = self._session.memory, places.here()
        try:
            memory.device.take_outside(size_bytes, memory.stacks.here(), place)
        except OutOfMemory:
            raise OutOfMemoryError(
                f"NCCL could not take {size_bytes >> 20} MiB for a communicator: {memory.out_of_memory_text(size_bytes)}"
            ) from None
        self._taken[place] = self._taken.get(place, 0) + size_bytes

    def group(self, group) -> None:
        """It is one of those that this rank is in."""
        self.rank.collectives.groups.setdefault(f"{group.group_name} {group._size}", [])

    def collective(self, group, kind: str) -> None:
        if kind not in ("send", "recv") and group._size > 1:
            self.rank.collectives.add(f"{group.group_name} {group._size}", kind)

    def write(self) -> None:
        if count := len(self._communicators):
            text = nccl.told(count, max(self._taken.values()), bool(self._all_to_all))
            self._session.notes.add("kernel", text, line="")

    def unknown(self, tensors, what: str) -> None:
        """Values that come from another rank."""
        for tensor in tensors:
            if tensor.is_cuda:
                self._session.values.assume(tensor)
        self._session.notes.add(
            "value", f"{what} takes values from another rank, which are not known: the tensor was left as it was"
        )

    def tell(self, group, tensors, root: int) -> None:
        """A broadcast of small host tensors is told for real."""
        for tensor in tensors:
            if tensor.is_cuda or tensor.numel() > _TOLD or tensor.dtype is torch.bfloat16:
                continue
            name = self.next_name(group, "tensor")
            if root == group._rank:
                self.shared.put(name, pickle.dumps(tensor.detach().numpy()))
            elif (content := self.of_root(group, root, name)) is not None:
                tensor.copy_(torch.from_numpy(pickle.loads(content)).to(tensor.dtype).view(tensor.size()))

    def next_name(self, group, what: str) -> str:
        """The same on all ranks of a group, for they broadcast in one order."""
        key = (what, group.group_name)
        self._broadcasts[key] = self._broadcasts.get(key, 0) + 1
        return f"{what} {group.group_name} {self._broadcasts[key]}"

    def of_root(self, group, root: int, name: str) -> bytes | None:
        if (group._rank if root < 0 else root) == group._rank or group._size == 1:
            return None
        return self.shared.await_from(dist.get_global_rank(group, root), name)


def install(session) -> None:
    watch = session.watch = Watch(session)
    Store.watch = watch
    c10d = dist.distributed_c10d
    _wear_environment(session)
    _rendezvous(session, c10d)
    _groups(watch, c10d)
    _record_nothing(c10d)
    _split(c10d)
    _objects(watch, c10d)
    for name in ("TCPStore", "FileStore", "HashStore"):
        for module in (dist, c10d, sys.modules["torch.distributed.rendezvous"]):
            setattr(module, name, getattr(process_group, name))
    _time_nothing()
    _fake_no_context()
    _checkpoints_of_one()
    _random_in_parts()
    launchers.install(session)


def _time_nothing() -> None:
    """DDP measures itself by events of the GPU, and logs that. Where PyTorch has a timer for CUDA it is put under a key that nobody asks for: as in a
    build without CUDA there is then none. (The registry is a hash table: in each entry the next one's address, then the key, a byte.)"""
    from torch._C._distributed_c10d import Logger

    Logger.set_runtime_stats_and_log = lambda _logger: None
    find = getattr(no_gpu.library("libtorch_cpu.so"), "_ZN4c10d13TimerRegistryEv", None)
    if find is None:
        return
    find.restype, find.argtypes = ctypes.c_void_p, []
    _buckets, _bucket_count, entry, count = (ctypes.c_uint64 * 4).from_address(find())
    for _ in range(min(count, 32)):
        key = ctypes.c_uint8.from_address(entry + 8)
        if key.value == _CUDA:
            key.value = _NOBODY
            return
        entry = ctypes.c_uint64.from_address(entry).value


def _when_imported(name: str, change) -> None:
    if name in sys.modules:
        change(name, sys.modules[name])
    else:
        ImportWatch((name,), change)


def _fake_no_context() -> None:
    """PyTorch's fake tensors, by which DTensor learns shapes, open a context on the GPU first."""

    def without(_name, module):
        for name in ("init_cuda_context", "init_gpu_context"):
            if hasattr(module, name):
                setattr(module, name, lambda *_args: None)

    _when_imported("torch._subclasses.fake_tensor", without)


def _random_in_parts() -> None:
    """DTensor draws its random numbers through an operator of higher order, which moves the generator's state: here they are not drawn."""

    def plainly(_name, module):
        if hasattr(module, "run_dtensor_rng_op"):
            module.run_dtensor_rng_op = lambda _start, _end, op, *args, **kwargs: op(*args, **kwargs)

    _when_imported("torch.distributed.tensor._dispatch", plainly)


def _checkpoints_of_one() -> None:
    """Every other rank is taken to have what this one has, so the parts that all would write of a checkpoint are not the whole of it: that is no mistake of the program's."""

    def trusting(_name, module):
        if hasattr(module, "_validate_global_plan"):
            told = module._validate_global_plan.__annotations__.get("return")
            module._validate_global_plan = lambda *_args: True if told in (bool, "bool") else []

    _when_imported("torch.distributed.checkpoint.default_planner", trusting)


def _wear_environment(session) -> None:
    """A program that is started without a launcher though it is planned with many ranks is the first of them."""
    count = session.options.get("ranks")
    if count and "RANK" not in os.environ:
        given = ranks.environment(0, count, min(count, len(session.gpus)))
        os.environ.update({name: value for name, value in given.items() if not name.startswith("TORCHELASTIC")})


def _number(given: int, query: dict, name: str, url: str) -> int:
    for value in (given, query.get(name), os.environ.get(name.upper()) if url == "env" else None):
        if value not in (None, -1, "-1"):
            return int(value)
    if url == "env":
        raise ValueError(
            f"Error initializing torch.distributed using env:// rendezvous: environment variable {name.upper()} expected, but not set"
        )
    raise ValueError(
        f"Error initializing torch.distributed using {url}:// rendezvous: {name.replace('_', ' ')} parameter missing"
    )


def _rendezvous(session, c10d) -> None:
    original = c10d.rendezvous

    def rendezvous(url, rank=-1, world_size=-1, **options):
        parts = urllib.parse.urlparse(url)
        if parts.scheme not in ("env", "tcp", "file"):
            yield from original(url, rank, world_size, **options)
            return
        query = dict(urllib.parse.parse_qsl(parts.query))
        yield (
            process_group.TCPStore(),
            _number(rank, query, "rank", parts.scheme),
            _number(world_size, query, "world_size", parts.scheme),
        )

    c10d.rendezvous = rendezvous


def _groups(watch, c10d) -> None:
    helper = c10d._new_process_group_helper
    kinds: list[str] = []

    def make(options, _group_options=None):
        return OneRanksGroup(options.group_rank, options.group_size, kinds[-1], watch)

    c10d.Backend.register_backend(_BACKEND, make, extended_api=True, devices=["cpu", "cuda"])
    if getattr(c10d, "default_pg_nccl_timeout", 0) is None:  # since 2.2
        c10d.default_pg_nccl_timeout = datetime.timedelta(minutes=10)

    @functools.wraps(helper)
    def new_group(group_size, group_rank, global_ranks_in_group, backend, store, *args, **options):
        kind = str(backend or "undefined")
        if kind == "fake" or kind == "mpi":
            if kind == "mpi":
                raise Unplannable("the backend mpi of torch.distributed is not known to a dry run: gloo and nccl are")
            return helper(group_size, group_rank, global_ranks_in_group, backend, store, *args, **options)
        if not global_ranks_in_group:
            _first_group(watch, group_rank, group_size)
        config = str(c10d.BackendConfig(c10d.Backend(kind)))
        kinds.append("cpu:gloo,cuda:nccl" if kind == "undefined" else kind)
        try:
            group, prefix = helper(
                group_size, group_rank, global_ranks_in_group, c10d.Backend(_BACKEND), store, *args, **options
            )
        finally:
            kinds.pop()
        if isinstance(group, OneRanksGroup):
            c10d._world.pg_map[group] = (c10d.Backend(kind), prefix)
            c10d._world.pg_backend_config[group] = config
        return group, prefix

    c10d._new_process_group_helper = new_group
    c10d._store_based_barrier = lambda *_args, **_options: None
    dist.is_nccl_available = c10d.is_nccl_available = lambda: True
    if not hasattr(c10d, "ProcessGroupNCCL"):
        c10d.ProcessGroupNCCL = dist.ProcessGroupNCCL = type("ProcessGroupNCCL", (), {"Options": process_group.Options})


def _record_nothing(c10d) -> None:
    """From 2.15 on PyTorch's flight recorder listens to each group, and asks its backends, of which there are none here. What it writes down is for programs that hang."""
    attach = getattr(c10d, "_maybe_attach_flight_recorder", None)
    if attach is not None:
        c10d._maybe_attach_flight_recorder = lambda group, *args, **options: (
            None if isinstance(group, OneRanksGroup) else attach(group, *args, **options)
        )


def _split(c10d) -> None:
    """NCCL makes groups out of one that has its communicator already; here they are made like any other."""

    def split_group(
        parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, *_args, **_options
    ):
        parent = parent_pg or c10d._get_default_group()
        own = None
        for chosen in split_ranks or ():
            group = dist.new_group(
                [dist.get_global_rank(parent, rank) for rank in chosen], timeout=timeout, group_desc=group_desc
            )
            own = group if parent.rank() in chosen else own
        return own

    if hasattr(c10d, "split_group"):
        dist.split_group = c10d.split_group = split_group
    mesh = sys.modules.get("torch.distributed.device_mesh")
    if hasattr(mesh, "split_group"):
        mesh.split_group = split_group


def _first_group(watch, rank: int, world: int) -> None:
    import multiprocessing

    if not 0 <= rank < world:
        return
    if multiprocessing.parent_process() is not None and world > _RUN_WHOLE and rank not in ranks.representatives(world):
        watch._session._stop(f"at its process group: it is rank {rank} of {world}, for which others stand")
    no_gpu.take_host_memory_as_pinned(watch._session.options["library"])
    watch.rank.begin(rank, world)


def _objects(watch, c10d) -> None:
    """Objects that one rank has for the others: the first leaves them behind."""

    def group_of(group):
        return group or c10d._get_default_group()

    def root_of(group, src, group_src=None):
        return group_src if group_src is not None else c10d.get_group_rank(group, src or 0)

    def missing(what: str, root: int):
        raise Unplannable(f"{what} takes an object from rank {root}, which has not been run before this one")

    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None, **_options):
        if c10d._rank_not_in_group(group):
            return
        group = group_of(group)
        root = root_of(group, src, group_src)
        name = watch.next_name(group, "objects")
        if root == group.rank():
            watch.shared.put(name, pickle.dumps(list(object_list)))
        elif (content := watch.of_root(group, root, name)) is not None:
            object_list[:] = pickle.loads(content)
        elif any(o is None for o in object_list):
            missing("broadcast_object_list()", dist.get_global_rank(group, root))

    def all_gather_object(object_list, obj, group=None):
        if not c10d._rank_not_in_group(group):
            object_list[:] = [pickle.loads(pickle.dumps(obj)) for _ in range(group_of(group).size())]

    def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
        if not c10d._rank_not_in_group(group) and object_gather_list is not None:
            all_gather_object(object_gather_list, obj, group)

    def scatter_object_list(
        scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
    ):
        if c10d._rank_not_in_group(group):
            return
        group = group_of(group)
        root = root_of(group, src, group_src)
        name = watch.next_name(group, "scattered")
        given = scatter_object_input_list
        if root == group.rank():
            watch.shared.put(name, pickle.dumps(given))
        else:
            given = pickle.loads(watch.of_root(group, root, name) or b"N.") or missing(
                "scatter_object_list()", dist.get_global_rank(group, root)
            )
        scatter_object_output_list[0] = given[group.rank()]

    def send_object_list(*_args, **_options):
        return None

    def recv_object_list(object_list, src=None, *_args, **_options):
        raise Unplannable("recv_object_list() takes objects from another rank, which is not run together with this one")

    for function in (
        broadcast_object_list,
        all_gather_object,
        gather_object,
        scatter_object_list,
        send_object_list,
        recv_object_list,
    ):
        if hasattr(c10d, function.__name__):
            setattr(c10d, function.__name__, function)
            setattr(dist, function.__name__, function)
