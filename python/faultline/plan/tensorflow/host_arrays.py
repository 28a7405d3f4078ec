"""Large NumPy arrays that become tensors.

TensorFlow copies an array before it asks for the GPU's memory. Here the memory is asked for first, and a large array is not copied: a tensor lies where the array does, where TensorFlow can use
that place, and else it is copied if this machine has the room, or a stand-in is made of it.
"""

from __future__ import annotations

import ctypes

import numpy as np

LARGE_BYTES = 64 << 20
_ALIGNED = 64  # what TensorFlow's kernels ask of an address
_OF_FREE = 4  # at most so many parts of the host's free memory are copied at once


def is_large(value) -> bool:
    return isinstance(value, np.ndarray) and value.nbytes > LARGE_BYTES and value.dtype.kind in "fiubc"


def in_place(value: np.ndarray):
    """A tensor on the array's own memory; None: TensorFlow cannot take it there."""
    import tensorflow as tf

    if not value.flags.c_contiguous or value.ctypes.data % _ALIGNED or not value.dtype.isnative:
        return None
    if value.dtype.kind in "bc":
        return None
    memory = (ctypes.c_byte * value.nbytes).from_address(value.ctypes.data)
    memory.held = value  # lives as long as what is made of it
    seen = np.frombuffer(memory, value.dtype, value.size).reshape(value.shape)  # of a file opened to read, too
    return tf.experimental.dlpack.from_dlpack(seen.__dlpack__())


def may_be_copied(size_bytes: int) -> bool:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return size_bytes <= 1 << 30
    return size_bytes <= free // _OF_FREE
