"""Indices that the program's own values put outside their dimension: a kernel stops at them with a device-side assert, at this line or a later one.

Said only where the values are known: small ones one by one, large ones by the least and the largest that were copied from the host or that a draw of so many numbers cannot miss.
"""

from __future__ import annotations

import torch

from ..operations.operations import overloads

Tensor = torch.Tensor
_TABLES = set(overloads("embedding", "_embedding_bag", "_embedding_bag_forward_only"))
_LOSSES = set(overloads("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d"))
_ALONG = set(
    overloads(
        *("gather", "scatter", "scatter_", "scatter_add", "scatter_add_", "scatter_reduce", "scatter_reduce_"),
        *("index_select", "index_add", "index_add_", "index_copy", "index_copy_", "index_reduce", "index_reduce_"),
    )
)
_FROM_BOTH_ENDS = set(overloads("index_fill", "index_fill_"))
_LISTS = set(overloads("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put"))
_FLAT = set(overloads("take", "put", "put_"))
CHECKED = _TABLES | _LOSSES | _ALONG | _FROM_BOTH_ENDS | _LISTS | _FLAT


def _known(dry, tensor, ignored=None):
    """The least and the largest index, as far as they are sure; None: not known."""
    if (
        tensor.is_floating_point()
        or tensor.is_complex()
        or tensor.dtype in (torch.bool, torch.uint8)
        or not tensor.numel()
    ):
        return None
    host = tensor
    if tensor.is_cuda:
        record = dry.memory.find(tensor)
        if record is None or record.unset:
            return None
        host = dry.values.view(tensor, record)
        if host is None or record.assumed:
            whole = tensor.numel() * tensor.dtype.itemsize >= record.size_bytes
            known = record.extremes if whole else None
            return known and tuple(None if number == ignored else number for number in known)
    elif dry.host.is_unfilled(tensor):
        return None
    if ignored is not None:
        host = host[host != ignored]
        if not host.numel():
            return None
    least, most = torch.aminmax(host)
    return int(least), int(most)


def _asked(func, args, kwargs):
    """(indices, size of the dimension, its number, do negative ones count from the end, what is not looked at) for each of an operation's tensors of indices."""
    arguments = dict(zip((a.name for a in func._schema.arguments), args)) | kwargs
    first = args[0]
    if func in _TABLES:
        yield args[1], first.size(0), 0, False, None
    elif func in _LOSSES:
        dim = 1 if first.dim() > 1 else 0
        yield arguments["target"], first.size(dim), dim, False, arguments.get("ignore_index", -100)
    elif func in _ALONG | _FROM_BOTH_ENDS:
        dim = arguments.get("dim")
        if type(dim) is int and first.dim():
            yield arguments["index"], first.size(dim), dim % first.dim(), func in _FROM_BOTH_ENDS, None
    elif func in _FLAT:
        yield arguments["index"], first.numel(), None, True, None
    else:
        dim = 0
        for index in arguments["indices"]:
            if isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8):
                dim += index.dim()
                continue
            if isinstance(index, Tensor) and dim < first.dim():
                yield index, first.size(dim), dim, True, None
            dim += 1


def check(dry, func, args, kwargs) -> None:
    """Raises what a GPU's next call would."""
    for index, size, dim, both_ends, ignored in _asked(func, args, kwargs):
        known = _known(dry, index, ignored) if isinstance(index, Tensor) else None
        if known is None:
            continue
        least, most = known
        if most is not None and most >= size:
            wrong = most
        elif least is not None and least < (-size if both_ends else 0):
            wrong = least
        else:
            continue
        where = f"dimension {dim}, which has {size}" if dim is not None else f"a tensor of {size}"
        span = f"; allowed {-size if both_ends else 0} to {size - 1}"
        span += "" if None in known else f", found {least} to {most}"
        raise RuntimeError(
            f"CUDA error: device-side assert triggered (index {wrong} is out of range for {where}{span})"
        )


def of_draw(low: int, high: int, count: int):
    """The extremes that so many random whole numbers from low to below high cannot miss, but for one time in 10^9."""
    spare = min(high - low, int((high - low) * 21 / count) + 1)
    return (low + spare - 1, high - spare) if 2 * spare <= high - low + 1 else None
