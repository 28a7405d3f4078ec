"""Prefix sums and sampling."""

from __future__ import annotations

import torch

from ..release import releases
from .reductions import reduce_tensor, reduced_dims
from .sorting import radix_sort_bytes, scan_bytes
from .steps import Call, Steps, kernel, nbytes, wrap


@kernel("cumsum", "cumprod", "logcumsumexp", "_logcumsumexp", "cummax", "cummin", "_cummax_helper", "_cummin_helper")
def scan(call: Call):
    x = call.args[0]
    if x.numel() == 0 or x.dim() == 0:
        return None
    steps = Steps().out()
    out = call.outputs[0] if call.outputs else x
    if x.dtype != out.dtype:
        steps.take(x.numel() * out.element_size())
    elif not x.is_contiguous():
        steps.take(nbytes(x))
    if x.numel() == x.size(wrap(call.get("dim", 0), x.dim())):
        steps.give(steps.take(scan_bytes(x.numel())))
    return steps.done()


def _add_extremes(steps: Steps, x: torch.Tensor, gpu) -> None:
    """The least and the largest value, one after the other."""
    for _ in range(2):
        extreme = steps.take(x.element_size())
        reduce_tensor(steps, "value", [x.numel()], [1], 0, x.dtype, {0}, x.dtype, gpu)
        steps.give(extreme)


@kernel("multinomial")
def multinomial(call: Call):
    """Without replacement (or one sample): the checks of the probabilities, then weights divided by random numbers."""
    x = call.args[0]
    replacement = call.get("replacement", False)
    if x.numel() == 0:
        return None
    steps = Steps().out()
    rows = x.size(0) if x.dim() == 2 else 1
    if not replacement or call.get("num_samples") == 1:
        _add_extremes(steps, x, call.gpu)
        steps.give(steps.take(rows * x.element_size()))
        steps.take(nbytes(x))
        if call.get("num_samples") > 1:
            steps.take(nbytes(x))
            steps.take(x.numel() * 8)
        return steps.done()
    for _ in range(2):  # normalized weights and their prefix sums
        steps.take(nbytes(x))
    if x.dim() == 1:
        steps.take(nbytes(x))
    return steps.done()


@kernel("randperm")
def randperm(call: Call):
    """Random keys of 32 or 64 bits are sorted together with the numbers."""
    n = call.args[0]
    if n == 0 or not call.outputs:
        return None
    out = call.outputs[0]
    key = 4 if n < 1 << 15 else 8
    steps = Steps().out()
    steps.take(n * out.element_size())
    steps.take(n * key)
    steps.take(n * key)
    steps.take(radix_sort_bytes(n, key, out.element_size()))
    return steps.done()


@kernel("histc")
def histc(call: Call):
    x = call.args[0]
    if x.numel() == 0 or call.get("min", 0) != call.get("max", 0):
        return None
    steps = Steps().out()
    _add_extremes(steps, x, call.gpu)
    return steps.done()


@kernel("isfinite")
def isfinite(call: Call):
    x = call.args[0]
    if not x.dtype.is_floating_point:
        return None
    steps = Steps()
    taken = [steps.take(nbytes(x)), steps.take(x.numel()), steps.take(x.numel())]
    steps.out()
    steps.give(*reversed(taken))
    return steps.done()


@kernel("count_nonzero")
def count_nonzero(call: Call):
    x = call.args[0]
    steps = Steps()
    mask = steps.take(x.numel()) if x.dtype is not torch.bool or releases.now().count_nonzero_copies_bools else 0
    steps.out()
    wide = steps.take(x.numel() * 8)
    strides = torch.empty(x.shape, device="meta").stride()
    reduce_tensor(
        steps, "sum", x.shape, strides, 0, torch.int64, reduced_dims(x, call.get("dim")), torch.int64, call.gpu
    )
    steps.give(wide, mask)
    return steps.done()
