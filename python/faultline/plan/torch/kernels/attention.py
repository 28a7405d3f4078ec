"""Scaled dot-product attention: the fused kernels' accumulators, and results whose meta kernel reports another size.

Which of the kernels runs is decided in attention_choice.py. Head dimension d, queries t, keys s, b batches, h heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ..release import releases
from .steps import Call, Steps, beside_result, ceil_div, kernel, nbytes, round_up, true_outputs

FLOAT = 4


# --- memory-efficient (CUTLASS)


@dataclass(frozen=True)
class BackwardKernel:
    block_i: int
    block_j: int
    max_k: int

    def output_in_registers(self, is_half: bool) -> bool:
        return is_half and self.max_k <= self.block_i


def shared_memory_optin(capability: tuple[int, int]) -> int:
    """Shared memory that one block may ask for, by compute capability (CUDA programming guide)."""
    return {
        (7, 0): 96,
        (7, 2): 96,
        (7, 5): 64,
        (8, 0): 163,
        (8, 6): 99,
        (8, 7): 163,
        (8, 9): 99,
        (12, 0): 99,
        (12, 1): 99,
    }.get(tuple(capability), 227 if tuple(capability) >= (9, 0) else 48) * 1024


def efficient_backward_kernel(
    head_dim: int, dtype: torch.dtype, dropout: bool, capability: tuple[int, int]
) -> BackwardKernel:
    """The kernel that PyTorch's dispatcher picks: the smallest head size that fits, the larger block where shared memory allows it."""
    is_half = dtype != torch.float32
    max_k = next(k for k in (32, 64, 128, 65536) if head_dim <= k)
    if max_k <= 64:
        return BackwardKernel(64, 64, max_k)
    ampere = capability >= (8, 0)
    if is_half and capability in ((8, 6), (8, 9)) and head_dim <= 96 and not dropout:
        return BackwardKernel(128, 64, 96)
    large = (ampere or (capability >= (7, 0) and is_half)) and shared_memory_optin(capability) >= (
        160 if ampere else 96
    ) * 1024
    if not large:
        return BackwardKernel(64, 64, max_k)
    return BackwardKernel(128, 128 if is_half and ampere and max_k == 128 else 64, max_k)


def efficient_backward_workspace(
    b: int, h: int, t: int, s: int, d: int, dv: int, dtype: torch.dtype, dropout: bool, gpu: Any
) -> int:
    capability = tuple(gpu.compute_capability)
    how = efficient_backward_kernel(max(d, dv), dtype, dropout, capability)
    is_half = dtype != torch.float32
    accumulates_keys = is_half and not how.output_in_registers(is_half)
    splits = ceil_div(s, how.block_j)
    whole = releases.now().efficient_splits_all_keys
    if not whole and b * h >= 256 and s <= 2 * how.block_j:
        splits = 1
    if accumulates_keys and not whole:
        splits = min(splits, 200 // (b * h))
    if capability < (7, 0) and not whole or splits < 1 or torch.are_deterministic_algorithms_enabled():
        splits = 1
    keys = values = queries = 0
    if accumulates_keys:
        rows = splits * (round_up(s, how.block_j) if whole else how.block_j)
        keys = rows * round_up(d, how.block_i)
        values = rows * round_up(dv, how.block_i)
    if capability >= (7, 0) or is_half:
        tile = (16 + FLOAT * how.block_i * how.block_j) // FLOAT
        queries = ceil_div(t, how.block_i) * ceil_div(d, how.block_j) * tile
    return b * h * round_up(keys + values + queries, 4) * FLOAT


@kernel("_scaled_dot_product_efficient_attention", "_efficient_attention_forward")
def efficient_forward(call: Call):
    query, value = call.get("query"), call.get("value")
    if query.dtype == torch.float32 or value.size(-1) <= 128:
        return None
    return beside_result(query.numel() // query.size(-1) * value.size(-1) * FLOAT)


@kernel("_scaled_dot_product_efficient_attention_backward")
def efficient_backward(call: Call):
    grad, query, key, value = call.get("grad_out_"), call.get("query"), call.get("key"), call.get("value")
    b, h, t, d = query.shape
    steps = Steps()
    if not grad.transpose(1, 2).is_contiguous():
        steps.take(nbytes(grad))
    steps.out()
    delta = b * h * t * FLOAT
    if query.dtype == torch.float32:  # the row sums of grad * out are made outside the kernel
        products = steps.take(b * h * t * value.size(-1) * FLOAT)
        sums = steps.take(delta)
        if t > 1 and h > 1:
            steps.take(delta)
            steps.give(sums)
        steps.give(products)
    else:
        steps.take(delta)
    steps.take(
        efficient_backward_workspace(
            b, h, t, key.size(2), d, value.size(-1), query.dtype, bool(call.get("dropout_p", 0.0)), call.gpu
        )
    )
    return steps.done()


@true_outputs("_scaled_dot_product_efficient_attention")
def efficient_results(call: Call):
    return {2: 0, 3: 0}  # seed and offset stay on the host


# --- flash


def flash_splits(blocks: int, slots: int, key_blocks: int, most: int = 128) -> int:
    """Over how many parts the keys are split so that the multiprocessors are busy."""
    if blocks >= 0.8 * slots:
        return 1
    most = min(most, slots, key_blocks)

    def eligible(n: int) -> bool:
        return n == 1 or ceil_div(key_blocks, n) != ceil_div(key_blocks, n - 1)

    efficiency = []
    for n in range(1, most + 1):
        waves = blocks * n / slots
        efficiency.append(waves / ceil_div(blocks * n, slots) if eligible(n) else 0.0)
    best = max(efficiency, default=0.0)
    for n in range(1, most + 1):
        if eligible(n) and efficiency[n - 1] >= 0.85 * best:
            return n
    return 1


def _first_flash_forward(call: Call):
    """FlashAttention 1 reads (b * t, h, d), and adds up in float where the keys do not fit one block."""
    query, key, value = call.get("query"), call.get("key"), call.get("value")
    steps = Steps()
    for tensor in (query, key, value):
        if not _joins(tensor):
            steps.take(nbytes(tensor))
    steps.out()
    if key.size(2) > (128 if query.size(3) > 64 else 256):
        steps.take(query.numel() * FLOAT)
    return steps.done()


def _joins(tensor: torch.Tensor) -> bool:
    """Whether batch and rows are one dimension to a view."""
    return tensor.size(0) == 1 or tensor.size(2) == 1 or tensor.stride(0) == tensor.size(2) * tensor.stride(2)


@kernel("_scaled_dot_product_flash_attention")
def flash_forward(call: Call):
    query, key = call.get("query"), call.get("key")
    b, h, t, d = query.shape
    release = releases.now()
    if release.flash_is_first_version:
        return _first_flash_forward(call)
    steps = Steps().out()
    if call.get("dropout_p", 0.0) > 0:
        if release.flash_seed_on_gpu:
            steps.take(16)
        return steps.done()
    width = 256 if d <= 64 else 128 if d <= 128 else 64
    splits = flash_splits(
        b * h * ceil_div(t, 64),
        release.flash_slots_per_multiprocessor * call.gpu.multi_processor_count,
        ceil_div(key.size(2), width),
    )
    if splits > 1:
        steps.take(splits * b * h * t * FLOAT)
        steps.take(splits * b * h * t * release.flash_rounded_head(d) * FLOAT)
    return steps.done()


@kernel("_scaled_dot_product_flash_attention_backward")
def flash_backward(call: Call):
    grad, query, key, out = call.get("grad_out"), call.get("query"), call.get("key"), call.get("out")
    b, h, t, d = query.shape
    steps = Steps()
    for tensor in (grad, out):
        if not tensor.transpose(1, 2).is_contiguous():
            steps.take(nbytes(tensor))
    steps.out()
    release = releases.now()
    if release.flash_is_first_version:
        steps.take(b * h * round_up(t, 16) * FLOAT)
        wide = d > 64 or tuple(call.gpu.compute_capability) == (7, 5) and d > 32
        if key.size(2) > (128 if wide else 256):
            steps.take(b * h * t * d * FLOAT)
        return steps.done()
    rows = round_up(t, 128)
    steps.take(b * h * rows * FLOAT)
    parts = (
        ceil_div(call.gpu.multi_processor_count, b * h)
        if torch.are_deterministic_algorithms_enabled() and release.since(3)
        else 1
    )
    steps.take(parts * b * h * rows * release.flash_rounded_head(d) * FLOAT)
    if key.size(1) != h:  # grouped heads: one gradient per query head, summed afterwards
        expanded = b * key.size(2) * h * d * query.element_size()
        steps.take(expanded)
        steps.take(expanded)
    return steps.done()


@true_outputs("_scaled_dot_product_flash_attention")
def flash_results(call: Call):
    """Seed and offset, which older releases keep on the host."""
    return None if releases.now().flash_seed_on_gpu else {6: 0, 7: 0}


# --- cuDNN


@kernel("_scaled_dot_product_cudnn_attention")
def cudnn_forward(call: Call):
    """A fixed small workspace, none for a single query (measured)."""
    if call.get("query").size(2) <= 1:
        return None
    return beside_result(256)


@kernel("_scaled_dot_product_cudnn_attention_backward")
def cudnn_backward(call: Call):
    """The gradient of the queries is accumulated in float, beside one float per row and 256 bytes (measured, Hopper).

    With grouped heads the gradients of keys and values are made per query head first; that part is an estimate."""
    query, key, value = call.get("query"), call.get("key"), call.get("value")
    b, h, t, d = query.shape
    size = b * h * t * (d + 1) * FLOAT + 256
    if key.size(1) != h:
        size += b * h * key.size(2) * (key.size(3) + value.size(3)) * query.element_size()
    return beside_result(size)


@true_outputs("_scaled_dot_product_cudnn_attention")
def cudnn_results(call: Call):
    return None if call.get("compute_log_sumexp") else {1: 0}
