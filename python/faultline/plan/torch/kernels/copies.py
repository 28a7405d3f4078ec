"""Copies that convert on the GPU, and elementwise operations that make a tensor of a scalar."""

from __future__ import annotations

import torch

from .steps import Call, Steps, beside_result, is_channels_last, is_dense, kernel, nbytes


def _one_transfer(source: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether one memcpy carries the bytes across: one type, both dense in the same order."""
    if source.dtype != target.dtype or tuple(source.shape) != tuple(target.shape):
        return False
    return is_dense(target) and all(x == y for x, y, n in zip(source.stride(), target.stride(), source.shape) if n > 1)


def transfer_blocks(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> list[int]:
    """Blocks on the GPU beside source and target of a copy between host and GPU: one that waits converts on the host,
    one that does not wait converts on the GPU, and what is not contiguous is rearranged on the GPU."""
    from_host = source.device.type == "cpu"
    if source.numel() == 0 or from_host == (target.device.type == "cpu") or _one_transfer(source, target):
        return []
    count, same_type = target.numel(), source.dtype == target.dtype
    if from_host:
        if target.is_contiguous() and (same_type or not non_blocking):
            return []
        return [count * (source if non_blocking else target).dtype.itemsize]
    blocks = [] if same_type or not non_blocking else [count * target.dtype.itemsize]
    if not source.is_contiguous() or source.numel() != count:
        blocks.append(count * (target if blocks else source).dtype.itemsize)
    return blocks


def _transfer(call: Call, source: torch.Tensor, target: torch.Tensor):
    steps = Steps().out()
    for size in transfer_blocks(source, target, bool(call.get("non_blocking", False))):
        steps.take(size)
    return steps.done()


@kernel("_to_copy")
def to_copy(call: Call):
    return _transfer(call, call.args[0], call.outputs[0]) if call.outputs else None


@kernel("copy_")
def copy(call: Call):
    target, source = call.args[:2]
    return _transfer(call, source, target)


@kernel("abs")
def absolute(call: Call):
    """Of complex numbers: computed as complex numbers, then narrowed."""
    x = call.args[0]
    if not x.dtype.is_complex:
        return None
    return beside_result(nbytes(x))


@kernel("pow")
def power(call: Call):
    """A scalar base becomes a tensor of its own."""
    if call.overload != "Scalar":
        return None
    base = call.args[0]
    return beside_result(8 if isinstance(base, int) else call.args[1].element_size())


@kernel("im2col")
def im2col(call: Call):
    steps = Steps()
    steps.copy_unless_contiguous(call.args[0])
    return steps.out().done()


@kernel("searchsorted", "bucketize")
def searchsorted(call: Call):
    steps = Steps()
    steps.copy_unless_contiguous(*(argument for argument in call.args[:2] if isinstance(argument, torch.Tensor)))
    return steps.out().done()


@kernel("_fft_c2r")
def complex_to_real(call: Call):
    """cuFFT may overwrite its input here, so it is given a copy."""
    return beside_result(nbytes(call.args[0]))


def _copy_unless_dense(tensor: torch.Tensor):
    """In the format that its strides suggest, taken after the result."""
    steps = Steps().out()
    if not tensor.is_contiguous() and not is_channels_last(tensor):
        steps.take(nbytes(tensor))
    return steps.done()


_NEAREST = [f"{kind}{dims}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for dims in (1, 2, 3)]


@kernel(*_NEAREST)
def enlarged(call: Call):
    return _copy_unless_dense(call.args[0])


@kernel(*[f"{name}_backward" for name in (*_NEAREST, "upsample_bilinear2d", "upsample_trilinear3d")])
def enlarged_backward(call: Call):
    """These read the gradient in order; linear and bicubic ones read it as it lies."""
    return _copy_unless_dense(call.args[0])
