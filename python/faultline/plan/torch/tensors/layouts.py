"""What PyTorch's meta kernels do not tell of a result: that convolutions and batch norms keep channels last, as cuDNN does, and in which order a kernel
allocates several results."""

from __future__ import annotations

import torch

from .tensors import is_channels_last

aten = torch.ops.aten
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_CONVOLUTIONS = {
    aten.convolution.default: (0, 1),
    aten.convolution_backward.default: (1, 2),
}  # where input and weight stand
_NORMS = {
    getattr(aten, name).default: position
    for name, position in (
        ("cudnn_batch_norm", 0),
        ("native_batch_norm", 0),
        ("_native_batch_norm_legit", 0),
        ("_batch_norm_with_update", 0),
        ("cudnn_batch_norm_backward", 1),
        ("native_batch_norm_backward", 0),
        ("batch_norm_backward", 0),
    )
    if hasattr(aten, name)
}


def keep_format(func, args, leaves: list) -> None:
    """Gives new results the strides that they have on a GPU."""
    if (
        func is aten._cudnn_rnn.default and args[10] and not args[14]
    ):  # computed with time first, shown with the batch first
        batch, length, width = leaves[0][1]
        leaves[0] = ("new", leaves[0][1], (width, batch * width, 1), *leaves[0][3:])
        return
    places = _CONVOLUTIONS.get(func)
    if places is not None:
        last = any(isinstance(args[p], torch.Tensor) and is_channels_last(args[p]) for p in places)
    elif func in _NORMS:
        last = is_channels_last(args[_NORMS[func]])
    else:
        return
    if not last:
        return
    for index, leaf in enumerate(leaves):
        if leaf[0] == "new" and len(leaf[1]) in _FORMATS:
            stride = torch.empty(leaf[1], device="meta", memory_format=_FORMATS[len(leaf[1])]).stride()
            leaves[index] = ("new", leaf[1], stride, *leaf[3:])


# The order in which results are allocated, where it is not that of the result.
_ORDER = {aten.native_dropout.default: (1, 0)}
if hasattr(aten, "_scaled_dot_product_cudnn_attention"):
    _ORDER[aten._scaled_dot_product_cudnn_attention.default] = (6, 7, 0, 1)


def allocation_order(func, count: int) -> list[int] | None:
    first = _ORDER.get(func)
    if first is None:
        return None
    return [index for index in first if index < count] + [index for index in range(count) if index not in first]
