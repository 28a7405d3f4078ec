"""Sorting and selection: CUB's radix sort and PyTorch's multi-block top-k."""

from __future__ import annotations

import torch

from ..release import releases
from .steps import Call, Steps, ceil_div, is_dense, kernel, nbytes, round_up, wrap

SLACK = 255  # CUB aligns its temporary storage to 256 bytes
SMALL_SORT = 4096

# Elements per block of the one-sweep radix sort, by bytes of key and value (measured, Hopper). Only the bookkeeping
# of a block depends on it, about a kilobyte for that many elements.
_TILE = {(8, 8): 4608, (4, 8): 5376, (2, 8): 5632, (8, 0): 5760}


def radix_sort_bytes(n: int, key_bytes: int, value_bytes: int, bits: int | None = None) -> int:
    """Temporary storage of cub::DeviceRadixSort over n pairs (value_bytes 0: keys alone)."""
    passes = ceil_div(bits or key_bytes * 8, 8)
    blocks = ceil_div(n, _TILE.get((key_bytes, value_bytes), 4608))
    size = passes * 256 * 8 + blocks * 1024 + 256  # histograms, look-back, counters
    if passes > 1:
        size += round_up(n * key_bytes, 256) + round_up(n * value_bytes, 256)
    return size + SLACK


def bits_of(largest: int) -> int:
    """The bits CUB is told to sort when keys run up to this value."""
    return max(largest.bit_length(), 1)


def scan_bytes(n: int) -> int:
    """Temporary storage of a CUB prefix sum over n 64-bit numbers (measured: 256 bytes more for each 14336)."""
    return 1279 + 256 * ceil_div(max(0, n - 8192), 14336)


def select_bytes(n: int) -> int:
    """Temporary storage of a CUB selection among n elements: a word per tile (measured tile size)."""
    return max(round_up((ceil_div(n, 4200) + 32) * 8, 256), 1024) + SLACK


def count_bytes(n: int, gpu) -> int:
    """Temporary storage of a CUB reduction of n elements: a partial count per block, five blocks for each that fits at once."""
    if n <= 4096:
        return 1
    blocks = gpu.multi_processor_count * (gpu.max_threads_per_multi_processor // 256) * 5
    return round_up(4 * blocks, 256) + SLACK


def _radix_sort(steps: Steps, nsort: int, segments: int, itemsize: int) -> None:
    n = nsort * segments
    if segments == 1 or nsort >= 1000000:
        index = steps.take(nsort * 8)
        for _ in range(min(segments, 2)):  # one after the other, each with the same storage
            steps.give(steps.take(radix_sort_bytes(nsort, itemsize, 8)))
        steps.give(index)
    elif segments < 128:
        first, second = steps.take(n * 8), steps.take(n * 8)
        keys = steps.take(n * itemsize)
        steps.give(steps.take(radix_sort_bytes(n, itemsize, 8)))
        steps.give(keys)
        steps.give(steps.take(radix_sort_bytes(n, 8, 0, max(1, (segments - 1).bit_length()))))
        steps.give(second, first)
    else:
        index = steps.take(n * 8)
        steps.give(steps.take(n * (itemsize + 8) + SLACK))
        steps.give(index)


def add_sort(steps: Steps, x: torch.Tensor, dim: int) -> None:
    if x.dim() == 0 or x.numel() <= 1:
        return
    dim = wrap(dim, x.dim())
    nsort = x.size(dim)
    if nsort <= SMALL_SORT:
        steps.give(steps.take(nsort * 8))
        return
    copies = []
    if not (x.stride(dim) == 1 and is_dense(x)):
        copies.append(steps.take(nbytes(x)))
        if dim != x.dim() - 1:
            copies += [steps.take(nbytes(x)), steps.take(x.numel() * 8)]
    segments = x.numel() // nsort
    _radix_sort(steps, nsort, segments, x.element_size())
    steps.give(*reversed(copies))


@kernel("sort")
def sort(call: Call):
    x = call.args[0]
    steps = Steps().out()
    add_sort(steps, x, call.get("dim", -1))
    return steps.done()


@kernel("argsort", "msort")
def argsort(call: Call):
    """A sort whose values (argsort) or positions (msort) are dropped."""
    x = call.args[0]
    steps = Steps()
    dropped = x.numel() * 8 if call.func._schema.name == "aten::msort" else nbytes(x)
    steps.take(dropped)
    steps.out()
    add_sort(steps, x, 0 if call.func._schema.name == "aten::msort" else call.get("dim", -1))
    return steps.done()


def _uses_several_blocks(slices: int, size: int) -> bool:
    limits = ((20, 20000), (40, 10000), (80, 8000), (199, 5000), (799, 3000), (4000, 800))
    for most, least in limits:
        if slices <= most:
            return size >= least
    return size >= 400


@kernel("topk")
def topk(call: Call):
    x = call.args[0]
    if x.numel() == 0 or x.dim() == 0:
        return None
    dim, k = wrap(call.get("dim", -1), x.dim()), call.get("k")
    size = x.size(dim)
    slices = x.numel() // size
    steps = Steps().out()
    copy = 0 if x.is_contiguous() else steps.take(nbytes(x))
    if _uses_several_blocks(slices, size):
        per_thread = min(max(ceil_div(size * slices, call.gpu.multi_processor_count * 6 * 256), 4), 64)
        blocks = slices * ceil_div(size, per_thread * 256)
        word = 8 if x.element_size() == 8 else 4
        release = releases.now()
        state = 2 if release.topk_state_twice else 1
        sizes = (
            slices * x.element_size(),
            *(() if release.topk_digit_sums else (slices * 4,)),
            state * slices * 4,
            state * slices * word,
            blocks * 256 * 2,
            *((slices * 256 * 4,) if release.topk_digit_sums else ()),
            blocks * 4,
            blocks * 4,
        )
        taken = [steps.take(n) for n in sizes]
        for _ in range(2):
            steps.give(steps.take(scan_bytes(blocks)))
        steps.give(*reversed(taken))
    steps.give(copy)
    if call.get("sorted", True) and k > SMALL_SORT:
        values = call.outputs[0]
        steps.take(values.numel() * 8)
        steps.take(nbytes(values))
        add_sort(steps, values, dim)
        steps.take(values.numel() * 8)
    return steps.done()


@kernel("unique_consecutive", "_unique2", "_unique")
def unique(call: Call):
    """The sorted copy keeps its length (the result is cut from it), the original order is needed only for the inverse."""
    x = call.args[0]
    n = x.numel()
    if n == 0:
        return None
    steps = Steps()
    if not call.func._schema.name.endswith("consecutive"):
        inverse = bool(call.get("return_inverse", False))
        steps.take(n * x.element_size())
        if inverse:
            steps.take(n * 8)
            steps.take(n * 8)
        steps.give(steps.take(radix_sort_bytes(n, x.element_size(), 8 if inverse else 0)))
    steps.out()
    return steps.done()
