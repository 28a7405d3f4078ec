"""Gathering and scattering by index: embedding gradients, index_put with accumulation, nonzero, masks."""

from __future__ import annotations

import torch

from ..release import releases
from .sorting import bits_of, count_bytes, radix_sort_bytes, scan_bytes, select_bytes
from .steps import Call, Steps, ceil_div, is_low_precision, kernel, product, round_up

FEW_INDICES = 3072
ROWS_PER_THREAD = 10
MAX_BLOCK = 1024


@kernel("embedding_dense_backward")
def embedding_dense_backward(call: Call):
    """Up to 3072 indices are added directly. More are sorted, cut into runs of at most ten rows, and the runs are summed
    in float before they are scattered, unless runs are so few that atomic adds serve the GPU better."""
    grad, indices, rows = call.args[:3]
    n, width = indices.numel(), grad.size(-1)
    by_frequency = bool(call.get("scale_grad_by_freq", False))
    steps = Steps()
    steps.copy_unless_contiguous(indices, grad)
    if n <= FEW_INDICES and not by_frequency:
        return steps.out().done()
    word = indices.element_size()
    column = n * word
    steps.take(column)  # sorted, and their original places
    steps.take(column)
    order = steps.take(column)
    steps.give(steps.take(radix_sort_bytes(n, word, word)), order)
    if by_frequency:
        steps.take(column)
    steps.out()
    _sum_runs(steps, n, rows, width, grad.dtype, word, call.gpu)
    return steps.done()


def _sum_runs(steps: Steps, n: int, rows: int, width: int, dtype: torch.dtype, word: int, gpu) -> None:
    steps.take(n * word)
    steps.take(8)
    keys = steps.take(n * word)
    steps.give(steps.take(1279), keys)
    segments = min(n, rows)
    steps.take(segments * word)
    steps.take(segments * word)
    steps.give(steps.take(scan_bytes(segments)))
    steps.take(8)
    parts = n // ROWS_PER_THREAD + segments
    steps.take(parts * word)
    warped = round_up(width, gpu.warp_size)
    grid = ceil_div(segments * warped, min(warped, MAX_BLOCK))
    accumulate = 4 if is_low_precision(dtype) else dtype.itemsize
    atomic = (
        releases.now().embedding_adds_atomically
        and grid < gpu.multi_processor_count * 4
        and parts > grid * 4
        and not torch.are_deterministic_algorithms_enabled()
    )
    if atomic:
        steps.take(parts * word)
        if is_low_precision(dtype):
            steps.take(rows * width * 4)
    else:
        steps.take(parts * width * accumulate)


def add_nonzero_count(steps: Steps, n: int, gpu) -> int:
    """Counting comes before the result, whose size it tells; returns the counter's block."""
    count = steps.take(4)
    steps.give(steps.take(count_bytes(n, gpu)))
    return count


@kernel("nonzero")
def nonzero(call: Call):
    x = call.args[0]
    if x.numel() == 0:
        return None
    steps = Steps()
    steps.copy_unless_contiguous(x)
    count = add_nonzero_count(steps, x.numel(), call.gpu)
    steps.out()
    steps.give(steps.take(select_bytes(x.numel())), count)
    return steps.done()


@kernel("masked_select")
def masked_select(call: Call):
    """An index with the mask: its positions are listed first, one column per dimension."""
    mask = call.get("mask")
    steps = Steps()
    count = add_nonzero_count(steps, mask.numel(), call.gpu)
    found = call.outputs[0].numel() if call.outputs else 0
    columns = steps.take(found * mask.dim() * 8)
    steps.give(steps.take(select_bytes(mask.numel())), count)
    steps.out()
    steps.give(columns)
    return steps.done()


@kernel("index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put")
def index_put(call: Call):
    """With accumulation the indices become one linear index, which is sorted."""
    target, indices, values = call.args[:3]
    deterministic = torch.are_deterministic_algorithms_enabled()
    steps = Steps().out()
    if not (call.get("accumulate", False) or deterministic):
        return None
    indices = [i for i in indices if i is not None]
    if not indices or any(i.dtype in (torch.bool, torch.uint8) for i in indices):
        return None
    shape = torch.broadcast_shapes(*(i.shape for i in indices))
    n = product(shape)
    if n == 0:
        return None
    steps.copy_unless_contiguous(target)
    column = n * 8
    linear = 0
    for index in indices:
        converted = steps.take(index.numel() * 8) if index.dtype == torch.int32 else 0
        if not call.get("unsafe", False):
            for _ in range(2):
                extreme, flag = steps.take(8), steps.take(1)
                steps.give(flag, extreme)
        wrapped = steps.take(index.numel() * 8)
        scaled = steps.take(index.numel() * 8)
        steps.give(wrapped, converted)
        if linear:
            steps.give(scaled)
        else:
            linear = scaled
    row = product(target.shape[len(indices) :])
    if values.numel() != n * row or not values.is_contiguous():
        steps.take(n * row * target.element_size())
    for _ in range(3):  # sorted, original places, their order
        steps.take(column)
    steps.give(steps.take(radix_sort_bytes(n, 8, 8, bits_of((target.numel() - 1) // max(row, 1)))))
    return steps.done()


@kernel("isin")
def isin(call: Call):
    """Few test elements are compared one by one, with two masks of the elements' shape."""
    if call.overload != "Tensor_Tensor":
        return None
    elements, tests = call.args[:2]
    steps = Steps().out()
    if tests.numel() < 10.0 * elements.numel() ** 0.145:
        steps.take(elements.numel())
        steps.take(elements.numel())
        return steps.done()
    return None
