"""Between which two sizes cuDNN's workspace of a convolution lies.

The likely size is in convolutions.py. cuDNN chooses among algorithms by rules that are its own, so the same formulas hold for nine convolutions of ten and not for the tenth. What the others took,
among some thousands of recorded convolutions (cuDNN 9, H200; scripts/plan_accuracy/check_kernels.py --bounds counts them), is told by shares of the likely size and of `whole`: input, output and weight, all rearranged.
Wider than that are convolutions with groups, which were the worst to tell, and those on GPUs and in modes that were not measured. In float32 without tensor cores cuDNN takes two and a half times `whole` as a rule, and where a GPU
has room a hundred times as much for some; PyTorch takes the next algorithm where a workspace cannot be had, so the program needs no more than one of those.
"""

from __future__ import annotations

import torch

from ...session.estimates import Estimated
from .steps import is_low_precision

WHAT = "cuDNN's workspaces for convolutions"
GROUPED_MOST, DEPTHWISE_MOST, BENCHMARK_MOST, PLAIN_MOST = 2.5, 5.0, 4.0, 2.5  # of whole
SPLITS = 132 * (64 << 10)  # partial sums of a weight's gradient: tiles of 64 KiB, one for each multiprocessor


def between(likely: int, kind: str, shape, channels_last: bool, measured: bool) -> int:
    """measured: this GPU runs convolutions of the type on its tensor cores, as the measurements did."""
    whole = shape.x() + shape.y() + shape.weight() + 16
    least, most = _ends(likely, whole, kind, shape, channels_last, measured)
    if torch.backends.cudnn.benchmark and not torch.backends.cudnn.deterministic:
        least, most = 0, max(most, BENCHMARK_MOST * whole)  # every algorithm is tried, and the fastest is taken
    size = Estimated(likely, int(least), int(most), WHAT)
    return size if size.is_open else likely


def _ends(likely: int, whole: int, kind: str, shape, channels_last: bool, measured: bool) -> tuple[float, float]:
    if shape.groups > 1:
        return _of_groups(likely, whole, kind, shape, channels_last)
    if not measured:
        return 0, PLAIN_MOST * whole
    if shape.window == 1:
        return _of_one_position(likely, whole, kind, shape, channels_last)
    return (_of_pixels if channels_last else _of_planes)(likely, whole, kind, shape)


def _of_groups(likely: int, whole: int, kind: str, shape, channels_last: bool) -> tuple[float, float]:
    if shape.groups != shape.c:
        return 0, GROUPED_MOST * whole
    through_cudnn = kind == "weight" and channels_last and is_low_precision(shape.dtype)
    large = shape.strided or shape.window >= 25
    return (0 if likely else likely), max(likely, DEPTHWISE_MOST * whole if through_cudnn and large else 0)


def _of_one_position(likely: int, whole: int, kind: str, shape, channels_last: bool) -> tuple[float, float]:
    """A matrix product, or one of every other position."""
    if channels_last:
        return (0, likely + SPLITS) if kind == "weight" else (likely, max(likely, whole if shape.pads_y else 0))
    low = is_low_precision(shape.dtype)
    odd = shape.pads_x or shape.pads_y or shape.positions_in % 4 != 0
    most = max(likely, 1.05 * whole) if odd or not low else 1.1 * likely
    if shape.is_product and kind == "weight":
        partial = shape.n * shape.k * shape.c * 4
        return min(partial, 0.75 * likely), most
    return (0.65 * likely if shape.strided else likely), most


def _of_planes(likely: int, whole: int, kind: str, shape) -> tuple[float, float]:
    low = is_low_precision(shape.dtype)
    if kind == "weight":
        return (0.9 if low else 0.75) * likely, max(1.4 * likely, whole if likely == 0 else 0)
    if kind == "input":
        return (0.35 if shape.pads_x else 1) * likely, max(1.1 * likely, whole if likely == 0 else 0)
    if not low:
        direct = shape.x() + shape.weight()
        return min(direct, likely) if likely else 0, 1.3 * whole
    unsure = shape.few_channels or shape.window >= 49 or shape.sum_length < 64
    return (0 if unsure else likely), max(1.05 * likely, whole if unsure else 0)


def _of_pixels(likely: int, whole: int, kind: str, shape) -> tuple[float, float]:
    large = shape.window >= 12 or shape.dilation >= 6
    if kind == "weight":
        return min(0.6 * likely, max(0, likely - SPLITS)), max(1.4 * likely, likely + SPLITS, whole if large else 0)
    return (0 if shape.few_channels else 0.55 * likely), max(1.3 * likely, whole if large else 0)
