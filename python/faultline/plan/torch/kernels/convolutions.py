"""Convolutions through cuDNN: copies into the wanted layout, the workspace, and the reduction of the bias gradient.

cuDNN's choice of algorithm is its own; what stands here is an estimate fitted to measurements with cuDNN 9 on an H200
(PyTorch's default settings, no benchmark mode; 30,000 random convolutions of scripts/plan_accuracy/random_cases.py). What they show:
  - The tensor-core kernels read channels-last. For tensors that lie as NCHW, input, output and (kernels larger than 1)
    weight are rearranged inside the workspace: that is the bulk of it, and it is the same forward and backward. Which of
    them are depends on the sizes; the choices below are right in four of five convolutions of a few MiB.
  - Channels are padded to 4 (float) or 8 (half) elements, which matters for images of 3 channels.
  - A 1x1 convolution with stride 1 is a plain matrix product and needs nothing, but its weight gradient keeps one
    partial product per image in float.
  - Weight gradients split their sum over the multiprocessors: up to 64 KiB of partial tiles for each of them.
Older GPUs run float convolutions without tensor cores; for them no workspace is assumed.
"""

from __future__ import annotations

from typing import Any

import torch

from ..release import releases
from . import convolution_bounds
from .reductions import reduce_tensor
from .steps import Call, Steps, ceil_div, is_channels_last, is_low_precision, kernel, nbytes, product, round_up

TILE_BYTES = 64 << 10
FLOAT_SPLIT, HALF_SPLIT = 1568, 8192  # positions that one split of a weight gradient covers at least
SHORT_SUM, FEW_POSITIONS = 576, 1 << 18


def _uses_tensor_cores(dtype: torch.dtype, gpu: Any) -> bool:
    capability = tuple(gpu.compute_capability)
    if dtype == torch.float32:
        return capability >= (8, 0) and torch.backends.cudnn.allow_tf32
    return dtype == torch.float16 and capability >= (7, 0) or dtype == torch.bfloat16 and capability >= (8, 0)


class Shape:
    """The sizes that the workspace depends on, in elements; x is the side with c channels, y the one with k."""

    def __init__(
        self,
        x: torch.Size,
        y: torch.Size,
        weight: torch.Tensor,
        stride,
        padding,
        dilation,
        groups: int,
        transposed: bool,
    ) -> None:
        if transposed:
            x, y = y, x  # a transposed convolution is the gradient of one from y to x
        self.n, self.c, self.k = x[0], x[1], y[1]
        self.window = product(weight.shape[2:])
        self.positions_in, self.positions_out = product(x[2:]), product(y[2:])
        self.groups, self.dilation = groups, max(dilation)
        self.dtype = weight.dtype
        steps = list(stride) * len(weight.shape[2:]) if len(stride) == 1 else list(stride)
        self.strided = any(s != 1 for s in steps)
        padded = not isinstance(padding, str) and any(p != 0 for p in padding)
        self.is_product = self.window == 1 and not self.strided and not padded
        self.few_channels = self.c <= 4  # images: kernels of their own
        self.in_patches = self.strided and steps == list(weight.shape[2:])
        stem = self.dtype == torch.float16 and self.few_channels and self.window == 49
        self.align = 8 if is_low_precision(self.dtype) and not stem else 4

    @property
    def pads_x(self) -> bool:
        return self.c % self.align != 0

    @property
    def pads_y(self) -> bool:
        return self.k % self.align != 0

    @property
    def sum_length(self) -> int:
        """Products behind each element of the output."""
        return self.c // self.groups * self.window

    def x(self) -> int:
        return self.n * round_up(self.c, self.align) * self.positions_in * self.dtype.itemsize

    def y(self) -> int:
        return self.n * round_up(self.k, self.align) * self.positions_out * self.dtype.itemsize

    def weight(self, itemsize: int | None = None) -> int:
        channels = round_up(self.c // self.groups, self.align)
        return self.k * channels * self.window * (itemsize or self.dtype.itemsize)


# --- which of input (x), output (y) and weight (w) are rearranged: the choices that were measured


def _parts_of_planes(kind: str, shape: Shape) -> str:
    """Tensors that lie as NCHW."""
    low = is_low_precision(shape.dtype)
    if shape.window == 1:
        if not shape.strided:
            return "xy" if shape.positions_in % 4 and shape.n * shape.positions_in < 1792 else ""
        if kind == "weight":
            return "xyw" if low or shape.k >= 40 else ""
        return "xy" if low or shape.c >= 176 else ""
    if shape.few_channels and (kind == "forward" or not low):
        return "xyw" if shape.window >= 49 and not (low and shape.in_patches and shape.k < 512) else ""
    if kind == "forward":
        if low:
            return "xyw" if shape.sum_length >= 36 else ""
        if shape.sum_length <= 80:
            return "xw" if shape.k * shape.sum_length >= 4608 else ""
        if shape.dilation >= 9 and shape.sum_length < 2576:
            return "xw"
        if shape.window >= 95 and shape.n * shape.positions_in < 90000:
            return "xw"
        few = shape.sum_length <= SHORT_SUM and shape.n * shape.positions_out <= FEW_POSITIONS
        return "xw" if few and shape.dilation == 1 and not shape.pads_x else "xyw"
    if low:
        return "xyw"
    if kind == "input":
        return "xyw" if shape.c >= 12 else ""
    return "xyw" if shape.sum_length > 25 else ""


def _parts_of_pixels(kind: str, shape: Shape) -> str:
    """Channels-last tensors lie as the kernels read them, unless the channels are to be padded."""
    padded = ("x" if shape.pads_x else "") + ("y" if shape.pads_y else "")
    if shape.window == 1:
        return ""
    low = is_low_precision(shape.dtype)
    if kind == "forward" and padded == "y" and low and shape.sum_length < 208:
        return ""
    if padded and not low and shape.window > 12 and kind != "forward":
        return "xyw"
    if low or padded:
        return padded + "w" if padded else ""
    if kind == "forward" and shape.window >= 38:
        return "xw" if shape.k * shape.window < 15288 else "xyw"
    if kind == "weight":
        return "xy" if shape.dilation >= 9 else ""
    return ("xw" if kind == "forward" else "yw") if shape.dilation >= 9 else ""


def _rearranged(shape: Shape, parts: str) -> int:
    return sum(getattr(shape, {"x": "x", "y": "y", "w": "weight"}[part])() for part in parts) + (16 if parts else 0)


def _partial_tiles(shape: Shape, channels_last: bool, gpu: Any) -> int:
    """What a weight gradient's partial sums take: tiles of the weight in float, once per split of the positions."""
    sm = gpu.multi_processor_count
    if shape.is_product and channels_last:
        return sm * min(shape.k, 128) * min(shape.c, 128) * 4
    low = is_low_precision(shape.dtype)
    tile = 64 if shape.k <= 64 and shape.c <= 64 else 128
    tiles = ceil_div(shape.k, tile) * ceil_div(shape.c // shape.groups * shape.window, tile)
    if tiles > sm:
        return 0 if low else sm * TILE_BYTES
    splits = min(sm // tiles, shape.n * shape.positions_out // (HALF_SPLIT if low else FLOAT_SPLIT))
    return min(shape.weight(4) * splits, sm * TILE_BYTES) if splits > 1 else 0


def workspace(kind: str, shape: Shape, channels_last: bool, gpu: Any) -> int:
    """kind: "forward", "input" (its gradient) or "weight" (its gradient)."""
    if not _uses_tensor_cores(shape.dtype, gpu):
        return 0
    if shape.groups > 1 and shape.groups == shape.c:  # depthwise: PyTorch's own kernels, or a small cuDNN one
        return shape.x() + shape.y() if shape.dtype == torch.float16 and kind == "weight" and not channels_last else 0
    parts = "xyw" if shape.groups > 1 else (_parts_of_pixels if channels_last else _parts_of_planes)(kind, shape)
    if kind != "weight":
        return _rearranged(shape, parts)
    if shape.is_product and not channels_last and shape.groups == 1:  # one partial product per image
        whole = _rearranged(shape, "xyw") + _partial_tiles(shape, channels_last, gpu)
        # with channels that are to be padded the tensors are rearranged: outputs in float, inputs of images in halves (measured for 230 channels, and few)
        odd = shape.pads_y and not shape.pads_x if shape.dtype == torch.float32 else False
        return (
            whole
            if odd or (shape.dtype == torch.float32 and shape.k <= 4)
            else min(shape.n * shape.k * shape.c * 4, whole)
        )
    return _rearranged(shape, parts) + _partial_tiles(shape, channels_last, gpu)


def estimated(kind: str, shape: Shape, channels_last: bool, gpu: Any) -> int:
    """The workspace that is likely, with the two sizes that it lies between."""
    likely = workspace(kind, shape, channels_last, gpu)
    return convolution_bounds.between(likely, kind, shape, channels_last, _uses_tensor_cores(shape.dtype, gpu))


def _columns(x: torch.Tensor, y: torch.Size, weight: torch.Tensor, channels_last: bool, transposed: bool) -> int | None:
    """What PyTorch's own 3d kernel takes instead of cuDNN: one image's columns. None where cuDNN is asked."""
    if (
        transposed
        or channels_last
        or weight.dim() != 5
        or not is_low_precision(x.dtype)
        or not releases.now().conv3d_of_halves_is_slow
        or product(weight.shape[2:]) == 1
    ):
        return None
    return weight.size(1) * product(weight.shape[2:]) * product(y[2:]) * x.element_size()


def _copy_into_layout(steps: Steps, tensor: torch.Tensor, channels_last: bool) -> int:
    """The copy's block; 0 where there is none."""
    form = torch.contiguous_format
    if tensor.dim() in (4, 5) and channels_last:
        form = torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d
    return 0 if tensor.is_contiguous(memory_format=form) else steps.take(nbytes(tensor))


def _settings(call: Call) -> tuple:
    stride = call.get("stride", [1])
    padding = call.get("padding", [0])
    dilation = call.get("dilation", [1])
    stride = stride if isinstance(stride, (list, tuple)) else [stride]
    padding = padding if isinstance(padding, (list, tuple, str)) else [padding]
    dilation = dilation if isinstance(dilation, (list, tuple)) else [dilation]
    transposed = bool(call.get("transposed", "transpose" in call.func._schema.name))
    return stride, padding, dilation, call.get("groups", 1), transposed


@kernel(
    "convolution",
    "_convolution",
    "cudnn_convolution",
    "cudnn_convolution_transpose",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
)
def forward(call: Call):
    x = call.get("input") if call.get("input") is not None else call.args[0]
    weight = call.get("weight")
    if not call.outputs or x.numel() == 0:
        return None
    stride, padding, dilation, groups, transposed = _settings(call)
    channels_last = is_channels_last(x) or is_channels_last(weight)
    steps = Steps()
    for tensor in (x, weight):
        _copy_into_layout(steps, tensor, channels_last)
    steps.out()
    shape = Shape(x.shape, call.outputs[0].shape, weight, stride, padding, dilation, groups, transposed)
    columns = _columns(x, call.outputs[0].shape, weight, channels_last, transposed)
    space = steps.take(
        estimated("input" if transposed else "forward", shape, channels_last, call.gpu) if columns is None else columns
    )
    steps.give(space)
    return steps.done()


@kernel("convolution_backward")
def backward(call: Call):
    grad, x, weight = call.args[:3]
    if x.numel() == 0:
        return None
    wanted = call.get("output_mask")
    stride, padding, dilation, groups, transposed = _settings(call)
    channels_last = is_channels_last(x) or is_channels_last(weight)
    steps = Steps()
    if wanted[1]:  # the input is read for the weight's gradient alone
        _copy_into_layout(steps, x, channels_last)
    _copy_into_layout(steps, grad, channels_last)
    steps.out()
    shape = Shape(x.shape, grad.shape, weight, stride, padding, dilation, groups, transposed)
    columns = _columns(x, grad.shape, weight, channels_last, transposed)
    for position, kind in ((0, "forward" if transposed else "input"), (1, "weight")):
        if wanted[position]:
            copied = _copy_into_layout(steps, weight, channels_last) if position == 0 else 0
            space = steps.take(estimated(kind, shape, channels_last, call.gpu) if columns is None else columns)
            steps.give(space, copied)
    if wanted[2]:
        reduced = {d for d in range(grad.dim()) if d != 1}
        reduce_tensor(
            steps, "sum", grad.shape, grad.stride(), grad.storage_offset(), grad.dtype, reduced, grad.dtype, call.gpu
        )
    return steps.done()
