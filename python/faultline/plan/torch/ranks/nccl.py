"""What NCCL takes from the driver: figures that were measured or published, by GPU and by the size of a group. docs/plan-ranks.md has the table with sources.

NCCL takes it at the first collective of a communicator, outside PyTorch's allocator, and gives it back when the group is destroyed, which is not
counted. What it takes on a cluster depends on its release, its channels and the network: a figure, and no measurement of the planned machine.
"""

from __future__ import annotations

MIB = 1 << 20
_HOPPER = (
    558 * MIB,
    389 * MIB,
)  # measured on an H200, NCCL 2.28.9: the first communicator of a process, each further one
_TWO, _MORE = 544_000_000, 688_000_000  # published for four A100: a communicator of two ranks, of three or four
_ALL_TO_ALL = (
    3_280_000_000 / 7
)  # published for eight H100: beside the rest, for each of the seven other GPUs of a machine
_GPUS_OF_A_MACHINE = 8


def communicator_bytes(gpu, size: int, first: bool) -> int:
    if tuple(gpu.compute_capability) >= (9, 0):
        return _HOPPER[0 if first else 1]
    return _TWO if size <= 2 else _MORE


def all_to_all_bytes(size: int) -> int:
    """What a communicator takes more once all its ranks have sent to each other."""
    return int(_ALL_TO_ALL * (min(size, _GPUS_OF_A_MACHINE) - 1))


def told(count: int, size_bytes: int, all_to_all: bool) -> str:
    return (
        f"NCCL takes GPU memory of its own, which is in no counter of PyTorch: this rank has {count} communicator{'s' if count > 1 else ''}, counted with "
        f"{size_bytes / MIB:.0f} MiB by figures that were measured on an H200 or published for A100 and H100"
        f"{', all_to_all with them' if all_to_all else ''}; another release of NCCL or another network can take more"
    )
