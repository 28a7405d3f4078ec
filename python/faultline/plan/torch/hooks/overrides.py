"""Functions of PyTorch that the dry run puts others in the place of stay what `__torch_function__` can override, under the names that programs know.

PyTorch's own are asked for by identity: `with torch.device("meta")` is a mode that looks the function up in a set, a subclass of Tensor looks for `func is
torch.nn.functional.linear`. So the one that stands in the place is what they are given, and not the original behind it.
"""

from __future__ import annotations

import functools

import torch
from torch.overrides import handle_torch_function, has_torch_function


def overridable(original, by_operands: bool = True):
    """Of a function that PyTorch offers to modes, and to the subclasses among its operands where it asks these, before it does anything itself."""

    def decorate(function):
        @functools.wraps(original, updated=())
        def faultline(*args, **kwargs):
            given = (*args, *kwargs.values()) if by_operands else ()
            operands = [value for value in given if isinstance(value, torch.Tensor)]
            if torch._C._is_torch_function_mode_enabled() or has_torch_function(operands):
                return handle_torch_function(faultline, operands, *args, **kwargs)
            return function(*args, **kwargs)

        return faultline

    return decorate


def told_by_name() -> None:
    """PyTorch's set of constructors is made when it is first asked for, of what then stands under their names."""
    from torch.utils import _device

    _device._device_constructors.cache_clear()
