"""Layer, group, batch and foreach norms, softmax."""

from __future__ import annotations

import torch

from ..release import releases
from .reductions import last_pow2, reduce_tensor
from .steps import (
    Call,
    Steps,
    beside_result,
    ceil_div,
    is_channels_last,
    is_low_precision,
    kept_storage,
    kernel,
    nbytes,
    product,
    true_outputs,
    wrap,
)

FOREACH_CHUNK = 65536


def _float_size(dtype: torch.dtype) -> int:
    return 8 if dtype == torch.float64 else 4


@kernel("native_layer_norm", "_fused_rms_norm")
def layer_norm(call: Call):
    steps = Steps()
    steps.copy_unless_contiguous(call.args[0])
    return steps.out().done()


def _column_sums(steps: Steps, count: int, rows: int, width: int, dtype: torch.dtype, gpu) -> None:
    """Very tall inputs: partial column sums per block of rows, then an ordinary sum."""
    blocks = min(32768 // ceil_div(width, 32), ceil_div(rows, 32))
    parts = [steps.take(blocks * width * dtype.itemsize) for _ in range(count)]
    for _ in parts:
        steps.take(width * dtype.itemsize)
        reduce_tensor(steps, "sum", [blocks, width], [width, 1], 0, dtype, {0}, dtype, gpu)
    steps.give(*parts)


@kernel("native_layer_norm_backward", "_fused_rms_norm_backward")
def layer_norm_backward(call: Call):
    grad, x, shape = call.args[:3]
    wanted = call.get("output_mask")
    steps = Steps()
    steps.copy_unless_contiguous(x)
    steps.out()
    steps.copy_unless_contiguous(grad)
    width = product(shape)
    rows = x.numel() // width if width else 0
    count = sum(1 for w in wanted[1:] if w)
    if (
        count
        and releases.now().layer_norm_sums_columns
        and rows > 64 * 1024
        and width // 32 < call.gpu.multi_processor_count // 2
    ):
        _column_sums(steps, count, rows, width, x.dtype, call.gpu)
    return steps.done()


@kernel("native_group_norm")
def group_norm(call: Call):
    x, weight, bias, n, c, positions = call.args[:6]
    steps = Steps().out()
    if n and is_low_precision(x.dtype) and releases.now().group_norm_in_float:
        for _ in range(2):
            steps.take(n * call.args[6] * 4)
    if n == 0 or positions == 1 or (weight is None and bias is None):
        return steps.done()
    steps.take(n * c * _float_size(x.dtype))
    steps.take(n * c * _float_size(x.dtype))
    return steps.done()


@kernel("native_group_norm_backward")
def group_norm_backward(call: Call):
    x, weight, n, c, positions, groups = call.args[1], call.args[4], *call.args[5:9]
    wanted = call.get("output_mask")
    if n == 0:
        return None
    size = _float_size(x.dtype)
    steps = Steps().out()
    if positions > 1:
        steps.take(n * c * size)
        steps.take(n * c * size)
    if wanted[0]:
        scales = [steps.take(n * groups * size), steps.take(n * groups * size)]
        if positions > 1 and weight is not None:
            steps.give(steps.take(n * c * size))
        steps.give(*reversed(scales))
    return steps.done()


# --- batch norm


def _columns_launch(rows: int, channels: int) -> tuple[int, int]:
    """Blocks across channels and rows of PyTorch's channels-last kernels."""
    width = min(last_pow2(channels), 32)
    height = min(last_pow2(ceil_div(rows, 16)), 512 // width)
    if width * height != 512:
        width = min(last_pow2(channels), 512 // height)
    down = min(ceil_div(rows, height * 16), 128)
    return ceil_div(channels, width), 1 if down < 8 else down


def _uses_columns(x: torch.Tensor) -> bool:
    return is_channels_last(x) or x.is_contiguous() and x.dim() > 1 and x.stride(1) == 1


@kernel("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "batch_norm_stats")
def batch_norm(call: Call):
    x = call.args[0]
    training = call.get("training", True)
    if not training or not _uses_columns(x) or x.numel() == 0:
        return None
    across, down = _columns_launch(x.numel() // x.size(1), x.size(1))
    steps = Steps().out()
    if down > 1:
        steps.take(4 * x.size(1) * down * _float_size(x.dtype))
        steps.take(4 * across)
    return steps.done()


@kernel("native_batch_norm_backward")
def batch_norm_backward(call: Call):
    grad, x = call.args[:2]
    if not call.get("train", True) or not (_uses_columns(x) and _uses_columns(grad)) or x.numel() == 0:
        return None
    across, down = _columns_launch(x.numel() // x.size(1), x.size(1))
    size = _float_size(x.dtype)
    steps = Steps()
    steps.take(x.size(1) * size)
    steps.take(x.size(1) * size)
    if down > 1:
        staging = [steps.take(2 * x.size(1) * down * size), steps.take(4 * across)]
        steps.give(*reversed(staging))
    return steps.out().done()


@kernel("cudnn_batch_norm")
def cudnn_batch_norm(call: Call):
    """Channels-last needs partial sums, about 0.05 (half) or 0.126 (float) bytes per element (measured)."""
    x = call.args[0]
    if not call.get("training", True) or not is_channels_last(x):
        return None
    return beside_result(int(x.numel() * (0.0504 if is_low_precision(x.dtype) else 0.126)) + 5 * x.size(1))


@kernel("cudnn_batch_norm_backward")
def cudnn_batch_norm_backward(call: Call):
    x, grad = call.args[:2]
    steps = Steps()
    channels_last = is_channels_last(x)
    if not (is_channels_last(grad) if channels_last else grad.is_contiguous()):
        steps.take(nbytes(grad))
    steps.out()
    if channels_last:
        steps.take(x.numel() // 12 + 5 * x.size(1))
    return steps.done()


# --- softmax, foreach


@kernel("_softmax", "_log_softmax")
def softmax(call: Call):
    steps = Steps().out()
    steps.copy_unless_contiguous(call.args[0])
    return steps.done()


@kernel("_safe_softmax")
def safe_softmax(call: Call):
    """As plain attention takes it: a mask of the values that are minus infinity, the rows that are all so, and a zero."""
    x, dim = call.args[:2]
    if x.numel() == 0:
        return None
    steps = Steps().out()
    if not x.is_contiguous():
        steps.give(steps.take(nbytes(x)))
    steps.take(x.numel())
    steps.take(x.numel() // x.size(dim))
    reduce_tensor(steps, "value", x.shape, x.stride(), 0, torch.bool, {wrap(dim, x.dim())}, torch.bool, call.gpu)
    steps.take(x.element_size())
    return steps.done()


@kernel("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(call: Call):
    """Gradient and result are multiplied first, but for the logarithm's."""
    grad, result = call.args[:2]
    steps = Steps().out()
    if call.func._schema.name == "aten::_softmax_backward_data":
        steps.take(grad.numel() * torch.promote_types(grad.dtype, result.dtype).itemsize)
    steps.copy_unless_contiguous(grad, result)
    return steps.done()


@kernel("_foreach_norm", "_foreach_max")
def foreach_norm(call: Call):
    """One partial result per tensor and chunk, for as many chunks as the largest tensor has."""
    tensors = call.args[0]
    if not tensors:
        return None
    dtype = call.get("dtype") or tensors[0].dtype
    chunks = max(ceil_div(t.numel(), FOREACH_CHUNK) for t in tensors)
    steps = Steps()
    steps.take(len(tensors) * chunks * (4 if is_low_precision(dtype) else dtype.itemsize))
    return steps.out().done()


def _norms_in_one(call: Call) -> bool:
    return bool(call.args[0]) and releases.now().foreach_norm_in_one


@kept_storage("_foreach_norm")
def first_norm(call: Call):
    """Where all norms are parts of one tensor, the first stands for it."""
    return {0: len(call.args[0]) * call.args[0][0].element_size()} if _norms_in_one(call) else None


@true_outputs("_foreach_norm")
def other_norms(call: Call):
    return dict.fromkeys(range(1, len(call.args[0])), 0) if _norms_in_one(call) else None
