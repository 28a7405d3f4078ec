"""The planned GPU as the dry run knows it: the catalogue's entry, in the words of torch.cuda.get_device_properties()."""

from __future__ import annotations

from dataclasses import dataclass

from . import environment
from .unplannable import Unplannable


@dataclass(frozen=True)
class Gpu:
    name: str
    capacity_bytes: int
    context_bytes: int
    compute_capability: tuple[int, int] = (8, 0)
    multi_processor_count: int = 108
    max_threads_per_multi_processor: int = 2048
    warp_size: int = 32
    l2_cache_size: int = 40 << 20
    shared_memory_per_block_optin: int = 163 << 10

    @classmethod
    def of(cls, entry: dict) -> Gpu:
        known = {name: value for name, value in entry.items() if name in cls.__dataclass_fields__}
        return cls(**{**known, "compute_capability": tuple(known.get("compute_capability", (8, 0)))})

    @property
    def major(self) -> int:
        return self.compute_capability[0]

    @property
    def minor(self) -> int:
        return self.compute_capability[1]


class Properties:
    """What torch.cuda.get_device_properties() returns."""

    def __init__(self, gpu: Gpu, total_memory=None):
        self._gpu, self._total_memory = gpu, total_memory
        self.name = gpu.name
        self.major, self.minor = gpu.compute_capability
        self.multi_processor_count = gpu.multi_processor_count
        self.max_threads_per_multi_processor = gpu.max_threads_per_multi_processor
        self.max_threads_per_block = 1024
        self.warp_size = gpu.warp_size
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 48 << 10
        self.shared_memory_per_block_optin = gpu.shared_memory_per_block_optin
        self.shared_memory_per_multiprocessor = gpu.shared_memory_per_block_optin + (1 << 10)
        self.L2_cache_size = gpu.l2_cache_size
        self.is_multi_gpu_board = self.is_integrated = 0
        self.gcnArchName = gpu.name
        self.uuid = "GPU-00000000-0000-0000-0000-000000000000"
        self.pci_bus_id = self.pci_device_id = self.pci_domain_id = 0

    @property
    def total_memory(self) -> int:
        return self._gpu.capacity_bytes if self._total_memory is None else self._total_memory()

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, total_memory={self._gpu.capacity_bytes >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


class VisibleGpus:
    """Whether the program may see the planned GPUs: CUDA_VISIBLE_DEVICES of its user, or of itself until it first uses one."""

    def __init__(self, mode):
        self._mode = mode
        self._used = False
        mode.on_gpu_after_fork = self._first_use

    def are_seen(self) -> bool:
        value = None if self._used else environment.hides_gpus()
        if value is not None:
            Unplannable(
                f'CUDA_VISIBLE_DEVICES is "{value}" in the program\'s environment: CUDA shows it no GPU then, on any machine, and so did the plan. To plan it on a GPU, unset that variable'
            )
        return value is None

    def _first_use(self) -> None:
        if not self.are_seen():
            raise RuntimeError("No CUDA GPUs are available")
        self._used, self._mode.on_gpu_after_fork = True, None
