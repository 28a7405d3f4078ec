"""The words of the trace for PyTorch's things."""

from __future__ import annotations

import functools

import torch


@functools.lru_cache(maxsize=None)
def op_name(func) -> str:
    """aten::add, without the overload."""
    return func._schema.name if hasattr(func, "_schema") else str(func)


@functools.lru_cache(maxsize=None)
def dtype_name(dtype: torch.dtype) -> str:
    return str(dtype)[6:]


def look(tensor: torch.Tensor) -> str:
    shape = ",".join(
        "1" if stride == 0 else str(size) for size, stride in zip(tensor.size(), tensor.stride())
    )  # an expanded dimension was given as 1
    return f"{dtype_name(tensor.dtype)}[{shape}]" + ("" if tensor.is_cuda else f"@{tensor.device.type}")


def operands_text(operands, most: int = 8) -> str:
    """float16[8,1024,768] float32[768]"""
    text = " ".join(look(t) for t in operands[:most])
    return text if len(operands) <= most else text + f" …{len(operands) - most}"
