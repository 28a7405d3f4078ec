"""Losses that reduce: the unreduced loss, and results that keep its storage."""

from __future__ import annotations

import torch

from ..release import releases
from .reductions import reduce_tensor, reduced_dims
from .steps import Call, Steps, kept_storage, kernel, nbytes, product

NONE, MEAN = 0, 1


def _reduction(call: Call) -> int:
    return call.get("reduction", MEAN)


def _full_bytes(call: Call) -> int:
    x, target = call.args[:2]
    shape = torch.broadcast_shapes(x.shape, target.shape)
    return product(shape) * torch.promote_types(x.dtype, target.dtype).itemsize


def _reduce_all(steps: Steps, count: int, dtype: torch.dtype, call: Call) -> None:
    reduce_tensor(steps, "mean" if _reduction(call) == MEAN else "sum", [count], [1], 0, dtype, {0}, dtype, call.gpu)


@kernel("mse_loss", "smooth_l1_loss")
def elementwise_loss(call: Call):
    if _reduction(call) == NONE:
        return None
    dtype = torch.promote_types(call.args[0].dtype, call.args[1].dtype)
    size = _full_bytes(call)
    steps = Steps().out()
    loss = steps.take(size)
    _reduce_all(steps, size // dtype.itemsize, dtype, call)
    steps.give(loss)
    return steps.done()


@kept_storage("mse_loss", "smooth_l1_loss", "binary_cross_entropy")
def reduced_in_place(call: Call):
    """The scalar result is made as a full-size tensor first and keeps that storage."""
    return None if _reduction(call) == NONE else {0: _full_bytes(call)}


@kernel("binary_cross_entropy")
def binary_cross_entropy(call: Call):
    if _reduction(call) == NONE:
        return None
    x = call.args[0]
    steps = Steps().out()
    scalar = steps.take(x.element_size())
    _reduce_all(steps, x.numel(), x.dtype, call)
    steps.give(scalar)
    return steps.done()


@kernel("binary_cross_entropy_with_logits")
def with_logits(call: Call):
    """Tensors of the loss's size; without a reduction one of them is the result."""
    x = call.args[0]
    most, at_mean = releases.now().bce_with_logits_tensors
    if most > 2 and call.get("pos_weight") is not None:
        most += 1
    steps = Steps()
    if _reduction(call) == NONE:
        steps.take(nbytes(x))
        steps.out()
        for _ in range(most - 2):
            steps.take(nbytes(x))
        return steps.done()
    taken = [steps.take(nbytes(x)) for _ in range(most)]
    steps.give(*reversed(taken[at_mean:]))
    steps.out()
    _reduce_all(steps, x.numel(), x.dtype, call)
    steps.give(*reversed(taken[:at_mean]))
    return steps.done()


@kernel("huber_loss", "soft_margin_loss")
def loss_then_reduction(call: Call):
    if _reduction(call) == NONE:
        return None
    x = call.args[0]
    steps = Steps()
    loss = steps.take(nbytes(x))
    steps.out()
    _reduce_all(steps, x.numel(), x.dtype, call)
    steps.give(loss)
    return steps.done()


@kernel("logsumexp")
def logsumexp(call: Call):
    x = call.args[0]
    if x.numel() == 0 or not x.dtype.is_floating_point:
        return None
    reduced = reduced_dims(x, call.get("dim"))
    kept = product([s for d, s in enumerate(x.shape) if d not in reduced])
    steps = Steps()
    maxes = steps.take(kept * x.element_size())
    reduce_tensor(steps, "value", x.shape, x.stride(), x.storage_offset(), x.dtype, reduced, x.dtype, call.gpu)
    absolute, infinite = steps.take(kept * x.element_size()), steps.take(kept)
    steps.give(infinite, absolute)
    shifted = steps.take(nbytes(x))
    steps.out()
    reduce_tensor(steps, "sum", x.shape, x.stride(), 0, x.dtype, reduced, x.dtype, call.gpu)
    steps.give(shifted, maxes)
    return steps.done()
