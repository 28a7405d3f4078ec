"""torch.cuda as the program would find it on the planned GPU: availability, properties, memory queries, streams, events, graphs, generators.

Where torch.cuda's own Python code stands on a function of torch._C, that function is answered, so that memory_summary() and its kin print what this
version of PyTorch prints. Classes that a build without CUDA does not have are replaced.
"""

from __future__ import annotations

import functools
import sys

import torch

from ...._file_owner import is_library
from ....common.stacks import user_line
from ...session.gpu import Gpu, Properties
from ..hooks import read_out
from ..hooks.overrides import overridable, told_by_name
from ..release import releases
from ..release.older_torch import notice_deaths
from ..tensors import places
from ..tensors.memory import Memory
from . import between_gpus, cuda_streams, memory_pools
from .cuda_streams import Event, Graph, Stream, current_stream, default_stream, use_stream
from .random_state import Generator, RandomState

CPU = torch.device("cpu")


class Api:
    def __init__(self, memory: Memory, gpus: list[Gpu], notes, progress):
        self.memory, self.gpus, self.notes, self.progress = memory, gpus, notes, progress
        self.properties = [
            Properties(gpu, functools.partial(self.total_memory, place)) for place, gpu in enumerate(gpus)
        ]
        self.asked_free_line = ""  # where the program first asked how much memory is free
        self.less_free_bytes = 0  # that it is told less, to learn whether it takes what is free
        self.fractions = [1.0] * len(gpus)
        self.pools = memory_pools.Pools(memory)
        self.capturing = False  # a CUDA graph

    def set_stream(self, stream) -> None:
        cuda_streams.remember(stream)
        self.memory.choose_stream(
            stream.device_index,
            self.memory.device.stream(stream.cuda_stream, stream.device_index) if stream.cuda_stream else 0,
        )

    # --- numbers

    def memory_stats(self, device=0) -> dict:
        notice_deaths()
        s = self.memory.device.stats(places.check(device))

        def stat(current=0, peak=None, allocated=0, freed=0):
            all_ = {
                "current": current,
                "peak": current if peak is None else peak,
                "allocated": allocated,
                "freed": freed,
            }
            nothing = {"current": 0, "peak": 0, "allocated": 0, "freed": 0}
            return {"all": all_, "small_pool": dict(nothing), "large_pool": dict(all_)}

        return {
            "allocation": stat(s.current_allocations, None, s.allocations, s.allocations - s.current_allocations),
            "segment": stat(s.current_segments, None, s.segments_taken, s.segments_returned),
            "active": stat(s.current_allocations),
            "inactive_split": stat(),
            "allocated_bytes": stat(s.allocated_bytes, s.peak_allocated_bytes),
            "reserved_bytes": stat(s.reserved_bytes, s.peak_reserved_bytes),
            "active_bytes": stat(s.allocated_bytes, s.peak_allocated_bytes),
            "inactive_split_bytes": stat(s.inactive_split_bytes),
            "requested_bytes": stat(s.requested_bytes, s.peak_requested_bytes),
            "oversize_allocations": stat()["all"],
            "oversize_segments": stat()["all"],
            "num_alloc_retries": s.alloc_retries,
            "num_ooms": s.out_of_memories,
            "max_split_size": -1,
            "num_sync_all_streams": 0,
            "num_device_alloc": s.segments_taken,
            "num_device_free": s.segments_returned,
        }

    def is_available(self) -> bool:
        return self.visible.are_seen()

    def device_count(self):
        if not self.visible.are_seen():
            return 0
        if not is_library(sys._getframe(1).f_code.co_filename):
            self.notes.add("mode", f"torch.cuda.device_count() is {places.count}, as planned (--gpu 2xNAME plans two)")
        return places.count

    def mem_get_info(self, device=None):
        place = places.of(device)
        notice_deaths()
        free_bytes = self.memory.device.stats(place).device_free_bytes
        return max(0, free_bytes - self.less_free_bytes), self.total_memory(place)

    def total_memory(self, place: int) -> int:
        """The program asks how much there is, perhaps to take it."""
        self.asked_free_line = self.asked_free_line or user_line()
        return max(0, self.gpus[place].capacity_bytes - self.less_free_bytes)

    def empty_cache(self):
        # As in a recording, the stack ends in PyTorch's own function: it tells this call from what the allocator returns by itself.
        notice_deaths()
        device = self.memory.device
        stack = device.stack(self.memory.stacks.here(), device.frame("empty_cache", torch.cuda.memory.__file__, 0))
        for place in range(places.count):
            device.empty_cache(stack, place)

    def set_fraction(self, fraction, device=None):
        if not isinstance(fraction, float):
            raise TypeError("Invalid type for fraction argument, must be `float`")
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
        place = places.of(device)
        self.fractions[place] = fraction
        self.memory.device.set_limit(0 if fraction == 1.0 else int(fraction * self.gpus[place].capacity_bytes), place)

    def dump_snapshot(self, filename="dump_snapshot.pickle", *_args, **_kwargs):
        self.notes.add(
            "skipped", f"torch.cuda.memory._dump_snapshot({filename!r}) wrote nothing: the plan's trace holds the same"
        )

    # --- putting it in place

    def install(self) -> None:
        cuda_streams.api = self
        self._patch_c()
        self._patch_cuda()
        self._patch_memory()
        self._patch_tensor()
        self._patch_constructors()
        self._patch_libraries()
        if torch.version.cuda is None:
            torch.version.cuda = ".".join(map(str, releases.now().cuda))

    def _patch_c(self) -> None:
        answers = {
            "_cuda_getDeviceCount": lambda: places.count,
            "_cuda_getDevice": places.current,
            "_cuda_setDevice": lambda index: places.exchange(index) and None,
            "_cuda_exchangeDevice": places.exchange,
            "_cuda_maybeExchangeDevice": places.exchange,
            "_cuda_synchronize": lambda *a: None,
            "_cuda_isCurrentStreamCapturing": lambda: self.capturing,
            "_cuda_getArchFlags": lambda: " ".join(f"sm_{v}" for v in (70, 75, 80, 86, 90, 100, 120)),
            "_cuda_memoryStats": self.memory_stats,
            "_cuda_resetPeakMemoryStats": lambda d=0: self.memory.device.reset_peaks(places.check(d)),
            "_cuda_resetAccumulatedMemoryStats": lambda d=0: None,
            "_cuda_emptyCache": self.empty_cache,
            "_cuda_hostMemoryStats": lambda: {},
            "_cuda_resetPeakHostMemoryStats": lambda: None,
            "_cuda_resetAccumulatedHostMemoryStats": lambda: None,
            "_cuda_memorySnapshot": lambda *a: {
                "segments": self.memory.device.segments(),
                "device_traces": [[] for _ in self.gpus],
                "allocator_settings": {},
                "external_annotations": [],
            },
            "_cuda_ipc_collect": lambda: None,
            "_cuda_getAllocatorBackend": lambda: "native",
            "_cuda_sleep": lambda cycles: None,
            "_cuda_set_sync_debug_mode": lambda m: None,
            "_cuda_get_sync_debug_mode": lambda: 0,
            "_cuda_canDeviceAccessPeer": lambda a, b: a != b,
            "_cuda_record_memory_history": lambda *a, **k: None,
            "_cuda_record_memory_history_legacy": lambda *a, **k: None,
            "_cuda_getMemoryFraction": lambda d=0: self.fractions[d],
            "_cuda_clearCublasWorkspaces": self.memory.forget_workspaces,
            "_cuda_getCompiledVersion": lambda: releases.now().cuda[0] * 1000 + releases.now().cuda[1] * 10,
            "_cuda_setMemoryMetadata": lambda text: None,
            "_cuda_getMemoryMetadata": lambda: "",
            "_cuda_getCurrentRawStream": lambda d=-1: current_stream(d).cuda_stream,
            "_cuda_cudaCachingAllocator_raw_alloc": self._raw_alloc,
            "_cuda_cudaCachingAllocator_raw_delete": self._raw_free,
            "_cuda_isInBadFork": lambda: False,
            "_cuda_cudaCachingAllocator_set_allocator_settings": lambda t: None,
            "_host_emptyCache": lambda: None,
            "_cuda_get_conv_benchmark_empty_cache": lambda: True,
            "_cuda_setMemoryFraction": lambda f, d=0: self.set_fraction(f, d),
        }
        for name, answer in answers.items():
            setattr(torch._C, name, answer)

    def _raw_alloc(self, size, stream=0):
        allocation, address = self.memory.take(size, self.memory.stacks.here())
        self._raw = getattr(self, "_raw", {})
        self._raw[address] = allocation
        return address

    def _raw_free(self, address):
        allocation = getattr(self, "_raw", {}).pop(address, None)
        if allocation:
            self.memory.device.free(allocation, self.memory.stacks.here())

    def _patch_cuda(self) -> None:
        cuda = torch.cuda
        answers = {**self._about_devices(), **self._about_streams(), **_about_the_rest(), **_about_random_numbers()}
        for name, answer in answers.items():
            if hasattr(cuda, name) or name in ("default_generators", "Stream", "Event"):
                setattr(cuda, name, answer)
        for module in ("random", "streams", "graphs"):
            inner = getattr(cuda, module, None)
            for name, answer in answers.items():
                if inner is not None and name in vars(inner):
                    setattr(inner, name, answer)
        cuda._initialized = True
        for name, planned in (("Stream", Stream), ("Event", Event)):
            if hasattr(torch, name):
                setattr(torch, name, _either(getattr(torch, name), planned))
        self._patch_accelerator()
        torch.backends.cudnn.is_available = lambda: True
        torch.backends.cudnn.version = lambda: releases.now().cudnn
        torch.backends.cuda.is_built = lambda: True
        torch.Generator = Generator

    def _about_devices(self) -> dict:
        return {
            "is_available": self.is_available,
            "is_initialized": lambda: True,
            "init": lambda: None,
            "_lazy_init": lambda: None,
            "_lazy_call": lambda function, **_: function(),
            "device_count": self.device_count,
            "_device_count_nvml": lambda: self.is_available() and places.count or 0,
            "current_device": places.current,
            "set_device": lambda device: places.exchange(places.of(device)) and None,
            "get_device_properties": lambda device=None: self.properties[places.of(device)],
            "get_device_name": lambda device=None: self.gpus[places.of(device)].name,
            "get_device_capability": lambda device=None: tuple(self.gpus[places.of(device)].compute_capability),
            "is_bf16_supported": lambda including_emulation=True: (
                including_emulation or self.gpus[places.current()].compute_capability >= (8, 0)
            ),
            "is_tf32_supported": lambda: self.gpus[places.current()].compute_capability >= (8, 0),
        }

    def _about_streams(self) -> dict:
        return {
            "synchronize": lambda device=None: places.of(device) and None,
            "current_stream": current_stream,
            "default_stream": default_stream,
            "set_stream": lambda stream: None if stream is None else self.set_stream(stream),
            "stream": use_stream,
            "Stream": Stream,
            "Event": Event,
            "ExternalStream": lambda ptr, device=None: Stream(device, stream_id=ptr),
            "StreamContext": use_stream,
            "is_current_stream_capturing": lambda: self.capturing,
            "CUDAGraph": Graph,
            "graph_pool_handle": Graph.new_pool,
        }

    def _patch_accelerator(self) -> None:
        cuda = torch.cuda
        for name, answer in (
            ("is_available", self.is_available),
            (
                "current_accelerator",
                lambda check_available=False: (
                    torch.device("cuda") if not check_available or self.is_available() else None
                ),
            ),
            ("device_count", lambda: places.count if self.is_available() else 0),
            ("synchronize", lambda device=None: None),
            ("current_device_index", places.current),
            ("current_device_idx", places.current),
            ("set_device_index", cuda.set_device),
            ("set_device_idx", cuda.set_device),
            ("current_stream", current_stream),
            ("set_stream", lambda s: self.set_stream(s)),
            ("empty_cache", self.empty_cache),
            ("memory_allocated", cuda.memory_allocated),
            ("max_memory_allocated", cuda.max_memory_allocated),
            ("memory_reserved", cuda.memory_reserved),
            ("max_memory_reserved", cuda.max_memory_reserved),
            ("memory_stats", cuda.memory_stats),
            ("reset_peak_memory_stats", cuda.reset_peak_memory_stats),
        ):
            if hasattr(torch, "accelerator") and hasattr(torch.accelerator, name):
                setattr(torch.accelerator, name, answer)

    def _patch_memory(self) -> None:
        for module in (torch.cuda, torch.cuda.memory):
            for name, answer in (
                ("mem_get_info", self.mem_get_info),
                ("empty_cache", self.empty_cache),
                ("set_per_process_memory_fraction", self.set_fraction),
                ("_dump_snapshot", self.dump_snapshot),
                ("_record_memory_history", lambda *a, **k: None),
                ("list_gpu_processes", lambda device=None: f"GPU:{places.of(device)}\nno processes are running"),
                ("device_memory_used", lambda device=None: self.memory.device.stats(places.of(device)).reserved_bytes),
                ("caching_allocator_alloc", lambda size, device=None, stream=None: self._raw_alloc(size)),
                ("caching_allocator_delete", self._raw_free),
            ):
                if hasattr(module, name):
                    setattr(module, name, answer)

    def _patch_libraries(self) -> None:
        """What stands beside PyTorch: marks for profilers, and copies between GPUs."""
        for name in ("range_push", "range_pop", "mark", "range_end", "range_start"):
            setattr(torch.cuda.nvtx, name, lambda *args, **kwargs: 0)
        torch.cuda.profiler.start = torch.cuda.profiler.stop = lambda: None
        torch.backends.cuda.preferred_linalg_library = lambda backend=None: None
        between_gpus.install()
        memory_pools.install(self.pools)

    def _patch_tensor(self) -> None:
        memory, progress = self.memory, self.progress
        data_ptr = torch.Tensor.data_ptr

        def planned_data_ptr(tensor):
            if not tensor.is_cuda:
                return data_ptr(tensor)
            record = memory.find(tensor)
            return record.address + tensor.storage_offset() * tensor.dtype.itemsize if record is not None else 0

        torch.Tensor.data_ptr = planned_data_ptr
        storage_data_ptr = torch.UntypedStorage.data_ptr
        torch.UntypedStorage.data_ptr = lambda storage: (
            memory.records[storage._cdata].address if storage._cdata in memory.records else storage_data_ptr(storage)
        )

        def pin_memory(tensor, device=None):
            if tensor.is_cuda:
                raise RuntimeError(f"cannot pin '{tensor.type()}' only dense CPU tensors can be pinned")
            return tensor if progress.is_pinned(tensor) else progress.pinned(tensor.clone())

        torch.Tensor.pin_memory = pin_memory
        torch.Tensor.record_stream = lambda tensor, stream: (
            None
        )  # the block would be kept until that stream is done: in a dry run, at once
        torch.Tensor.is_pinned = lambda tensor, device=None: progress.is_pinned(tensor)
        if hasattr(torch._C, "_get_accelerator"):
            torch._C._get_accelerator = lambda _check=None: torch.device("cuda")

        def cuda(tensor, device=None, non_blocking=False, memory_format=torch.preserve_format):
            return tensor.to(
                torch.device("cuda", places.of(device)), non_blocking=non_blocking, memory_format=memory_format
            )

        torch.Tensor.cuda = cuda

    @staticmethod
    def _patch_constructors() -> None:
        """Constructors from data go around the dispatch mode: the data becomes a host tensor, which then moves."""

        def through_host(original, takes_self):
            @overridable(original, by_operands=takes_self)
            def construct(*args, device=None, requires_grad=False, **kwargs):
                place = (
                    torch.device(device) if device is not None else args[0].device if takes_self else _default_place()
                )
                at = int(takes_self)
                if len(args) > at and isinstance(args[at], (list, tuple)) and (kinds := read_out.types_in(args[at])):
                    args = (*args[:at], read_out.numbers(args[at]), *args[at + 1 :])
                    kind = args[0].dtype if takes_self else read_out.common_type(kinds)
                    kwargs = {**kwargs, "dtype": kwargs.get("dtype") or kind}
                if place.type != "cuda":
                    given = {} if device is None else {"device": device}
                    return original(*args, **given, **({"requires_grad": True} if requires_grad else {}), **kwargs)
                if original is as_tensor and isinstance(args[0], torch.Tensor):
                    return args[0].to(place, kwargs.get("dtype"))
                if takes_self:
                    kwargs = {"dtype": args[0].dtype, **kwargs}
                    host = torch.empty(0).new_tensor(*args[1:], **kwargs, device="cpu")
                else:
                    host = original(*args, device="cpu", **kwargs)
                return host.to(place).requires_grad_(requires_grad)

            return construct

        as_tensor = torch.as_tensor
        for name in ("tensor", "as_tensor", "asarray"):
            setattr(torch, name, through_host(getattr(torch, name), False))
        torch.Tensor.new_tensor = through_host(torch.Tensor.new_tensor, True)
        told_by_name()


def _default_place() -> torch.device:
    """Where torch.set_default_device() and torch.device() as a context put new tensors."""
    from torch.overrides import _get_current_function_mode_stack
    from torch.utils._device import DeviceContext

    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return mode.device
    return CPU


def _either(real, planned):
    """torch.Stream and torch.Event for any device: those of the GPU are the planned ones."""

    class Either(real):
        def __new__(cls, *args, **kwargs):
            place = kwargs.pop("device", args[0] if args else None)
            if place is not None and not isinstance(place, int) and torch.device(place).type != "cuda":
                return real(place, *args[1:], **kwargs)
            return planned(place, **kwargs) if issubclass(planned, Stream) else planned(**kwargs)

    Either.__name__ = real.__name__
    return Either


def _about_the_rest() -> dict:
    return {
        "get_arch_list": lambda: ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
        "get_gencode_flags": lambda: "",
        "can_device_access_peer": lambda a, b: places.of(a) != places.of(b),
        "_is_in_bad_fork": lambda: False,
        "utilization": lambda device=None: 0,
        "temperature": lambda device=None: 0,
        "power_draw": lambda device=None: 0,
        "clock_rate": lambda device=None: 0,
        "memory_usage": lambda device=None: 0,
        "_sleep": lambda cycles: None,
        "_check_cubins": lambda: None,
        "_check_capability": lambda: None,
        "_maybe_exchange_device": places.exchange,
        "_exchange_device": places.exchange,
        "get_sync_debug_mode": lambda: 0,
        "set_sync_debug_mode": lambda mode: None,
        "has_half": True,
        "has_magma": True,
        "current_blas_handle": lambda: 0,
        "_compile_kernel": None,
    }


def _about_random_numbers() -> dict:
    generator = Generator("cuda")
    state = RandomState(generator)
    return {
        "manual_seed": generator.manual_seed,
        "manual_seed_all": generator.manual_seed,
        "seed": generator.seed,
        "seed_all": generator.seed,
        "initial_seed": generator.initial_seed,
        "get_rng_state": state.get,
        "get_rng_state_all": lambda: [state.get() for _ in range(places.count)],
        "set_rng_state": lambda new_state, device="cuda": state.set(new_state),
        "set_rng_state_all": lambda new_states: state.set(new_states[0]) if new_states else None,
        "default_generators": (generator,) * places.count,
    }
