"""Reductions (sum, mean, norm, max, var, any ...): the staging buffer and semaphores of a reduction across blocks.

When one thread block per result would leave the GPU idle, several blocks share a result and meet in global memory. The
buffer holds one partial value per (result, block, lane); for a sum over the rows of a large matrix, as every linear
layer's bias gradient is, that is tens to hundreds of MiB, and it grows with the number of multiprocessors. The launch
shape is worked out here as PyTorch's reduction launcher does, from the GPU's properties.
"""

from __future__ import annotations

import torch

from ..release import releases
from ..tensors.tensors import contiguous_stride
from .iterator import ReduceIterator, reduce_iterator
from .steps import Call, Steps, ceil_div, is_dense, is_low_precision, kernel, nbytes, wrap

MAX_THREADS = 512
MIN_VALUES_PER_THREAD = 16
MAX_VALUES_PER_THREAD = 256


def last_pow2(n: int) -> int:
    return 1 << (max(n, 1).bit_length() - 1)


def _output_vector(it: ReduceIterator, itemsize: int) -> int:
    first_output = it.num_reduce_dims
    width = 4
    for n in [
        it.offset // itemsize,
        it.shape[first_output],
        *(s // itemsize for d, s in enumerate(it.in_strides) if d != first_output),
    ]:
        while n % width:
            width //= 2
    return width


def staging(
    it: ReduceIterator, itemsize: int, value_bytes: int, input_vector: int, gpu, double_complex: bool = False
) -> tuple[int, int] | None:
    """Bytes of the staging buffer and of the semaphores, None when no result is shared between blocks."""
    outputs = it.num_outputs
    inputs = it.numel // outputs
    on_fastest = True
    width, height, stride = 1, 1, itemsize
    reduce_dims = it.num_reduce_dims
    if it.shape:
        on_fastest = reduce_dims == len(it.shape) or it.in_strides[0] < it.in_strides[reduce_dims]
        width, height = (inputs, outputs) if on_fastest else (outputs, inputs)
        stride = it.in_strides[0] if on_fastest else it.in_strides[reduce_dims]
    vector = 1
    if stride == itemsize:
        if (
            on_fastest
            and width >= (128 if releases.now().vectors_from_128 else 129)
            and reduce_dims == 1
            and input_vector > 1
        ):
            width //= input_vector
        elif not on_fastest:
            vector = _output_vector(it, itemsize)
            width //= vector

    max_threads = (256 if double_complex else MAX_THREADS) // vector
    width = last_pow2(width) if width < max_threads else max_threads
    height = last_pow2(height) if height < max_threads else max_threads
    block_width = min(width, gpu.warp_size)
    block_height = min(height, max_threads // block_width)
    block_width = min(width, max_threads // block_height)

    step_input, step_output = (block_width, 1) if on_fastest else (1, block_width)
    across_warps = ceil_div(inputs, step_input) >= min(block_height * 16, MAX_VALUES_PER_THREAD)
    if across_warps:
        step_input *= block_height
    else:
        step_output *= block_height
    values = ceil_div(inputs, step_input)
    grid = ceil_div(outputs // vector, step_output)
    target = gpu.multi_processor_count * (gpu.max_threads_per_multi_processor // (block_width * block_height))
    if not across_warps or values < MAX_VALUES_PER_THREAD or grid > target:
        return None
    blocks = max(
        min(ceil_div(target, grid), ceil_div(values, MIN_VALUES_PER_THREAD)), ceil_div(values, MAX_VALUES_PER_THREAD)
    )
    if blocks <= 1:
        return None
    buffer = value_bytes * outputs * blocks
    if not on_fastest:
        buffer *= block_width * vector
    return buffer, 4 * grid


def add_staging(steps: Steps, it: ReduceIterator, itemsize: int, value_bytes: int, input_vector: int, gpu) -> None:
    """Appends the blocks of one reduction, which runs in parts when its offsets do not fit 32 bits."""
    if not it.fits_32_bits():
        for part in it.split():
            add_staging(steps, part, itemsize, value_bytes, input_vector, gpu)
        return
    sizes = staging(it, itemsize, value_bytes, input_vector, gpu, value_bytes == 16 and itemsize == 16)
    if sizes:
        buffer = steps.take(sizes[0])
        semaphores = steps.take(sizes[1])
        steps.give(semaphores, buffer)


class Reduction:
    """How one kind of reduction accumulates: bytes per partial value and elements per vector load."""

    def __init__(self, kind: str, dtype: torch.dtype) -> None:
        itemsize = dtype.itemsize
        low = is_low_precision(dtype)
        value, vector = itemsize, 4
        if kind in ("sum", "mean", "prod", "nansum"):
            value = 4 if low else 8 if dtype == torch.complex32 else itemsize
            vector = releases.now().sum_vector_of_halves if itemsize == 2 and kind in ("sum", "mean") else 4
        elif kind == "norm":
            value = 4 if low else itemsize // 2 if dtype.is_complex else itemsize
        elif kind == "var":
            value, vector = (
                (32 if itemsize == 8 else 16),
                2 if releases.now().variance_in_vectors else 1,
            )  # mean, squares, two counts
        elif kind == "arg":
            value = 16  # value and 64-bit position
        elif kind == "minmax":
            value = 2 * itemsize
        self.value_bytes, self.input_vector, self.itemsize = value, vector, itemsize


def reduced_dims(tensor: torch.Tensor, dim) -> set[int]:
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return set(range(tensor.dim()))
    dims = dim if isinstance(dim, (list, tuple)) else [dim]
    return {wrap(d, tensor.dim()) for d in dims} if tensor.dim() else set()


def reduce_tensor(
    steps: Steps,
    kind: str,
    shape,
    strides,
    offset: int,
    dtype: torch.dtype,
    reduced: set[int],
    out_dtype: torch.dtype,
    gpu,
    out_strides=None,
) -> None:
    """Appends the blocks of reducing a tensor of this layout; the result is contiguous unless told."""
    if 0 in shape:
        return
    how = Reduction(kind, dtype)
    if out_strides is None:
        out_strides = contiguous_stride([size for d, size in enumerate(shape) if d not in reduced])
    it = reduce_iterator(list(shape), list(strides), offset, how.itemsize, reduced, out_strides, out_dtype.itemsize)
    add_staging(steps, it, how.itemsize, how.value_bytes, how.input_vector, gpu)


def dense_strides(tensor: torch.Tensor) -> list[int]:
    """The strides of a copy that keeps the order of dimensions of a dense tensor, contiguous otherwise."""
    if is_dense(tensor):
        return list(tensor.stride())
    return list(contiguous_stride(tensor.shape))


def _result_strides(call: Call, x: torch.Tensor, reduced: set[int]) -> list[int]:
    """Strides of the result for the dimensions that remain."""
    out = call.outputs[0] if call.outputs else None
    if out is None:
        return []
    if out.dim() == x.dim():
        return [out.stride(d) for d in range(x.dim()) if d not in reduced]
    return list(out.stride())


def _cast(steps: Steps, x: torch.Tensor, dtype: torch.dtype) -> tuple[list[int], int, torch.dtype]:
    """The layout that is reduced: the input itself, or the copy of another type that is made of it first."""
    low_to_single = is_low_precision(x.dtype) and dtype == torch.float32
    if dtype == x.dtype or low_to_single:
        return list(x.stride()), x.storage_offset(), x.dtype
    steps.take(x.numel() * dtype.itemsize)
    return dense_strides(x), 0, dtype


_KINDS = {
    "sum": "sum",
    "nansum": "nansum",
    "prod": "prod",
    "mean": "mean",
    "norm": "norm",
    "linalg_vector_norm": "norm",
    "amax": "value",
    "amin": "value",
    "all": "value",
    "any": "value",
    "var": "var",
    "std": "var",
    "var_mean": "var",
    "std_mean": "var",
    "aminmax": "minmax",
}


@kernel(*_KINDS)
def reduction(call: Call):
    x = call.args[0]
    if not call.outputs or x.numel() == 0:
        return None
    name = call.func._schema.name[6:]
    steps = Steps().out()
    out_dtype = call.outputs[0].dtype
    kind = _KINDS[name]
    if kind in ("sum", "nansum", "prod", "mean"):
        strides, offset, dtype = _cast(steps, x, out_dtype)
    elif kind == "norm" and call.get("dtype") is not None:
        strides, offset, dtype = _cast(steps, x, call.get("dtype"))
    else:
        strides, offset, dtype = list(x.stride()), x.storage_offset(), x.dtype
    reduced = reduced_dims(x, call.get("dim"))
    reduce_tensor(
        steps, kind, x.shape, strides, offset, dtype, reduced, out_dtype, call.gpu, _result_strides(call, x, reduced)
    )
    return steps.done()


@kernel("argmax", "argmin")
def arg_reduction(call: Call):
    x = call.args[0]
    if x.numel() == 0:
        return None
    dim = call.get("dim")
    steps = Steps().out()
    shape, strides, offset = list(x.shape), list(x.stride()), x.storage_offset()
    if dim is None:  # the flattened tensor is reduced
        if not x.is_contiguous():
            steps.take(nbytes(x))
            offset = 0
        shape, strides, dim = [x.numel()], [1], 0
    reduced = {wrap(dim, len(shape))} if shape else set()
    reduce_tensor(steps, "arg", shape, strides, offset, x.dtype, reduced, torch.int64, call.gpu)
    return steps.done()


@kernel("max", "min")
def max_min(call: Call):
    if call.overload not in ("", "default", "dim"):
        return None
    x = call.args[0]
    if x.numel() == 0:
        return None
    steps = Steps().out()
    if call.overload == "dim":
        reduced = reduced_dims(x, call.get("dim"))
        reduce_tensor(
            steps,
            "arg",
            x.shape,
            x.stride(),
            x.storage_offset(),
            x.dtype,
            reduced,
            x.dtype,
            call.gpu,
            _result_strides(call, x, reduced),
        )
    else:
        offset = x.storage_offset()
        if not x.is_contiguous():
            steps.take(nbytes(x))
            offset = 0
        reduce_tensor(steps, "value", [x.numel()], [1], offset, x.dtype, {0}, x.dtype, call.gpu)
    return steps.done()
