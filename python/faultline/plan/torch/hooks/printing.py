"""print(tensor). PyTorch switches every dispatch mode off while it writes a tensor, so the dry run shows it the values that it has."""

from __future__ import annotations

import torch
from torch import _tensor_str


def install(session) -> None:
    original, values = _tensor_str._str, session.values

    def faultline(tensor, *, tensor_contents=None):
        if (
            tensor_contents is None
            and tensor.is_cuda
            and tensor.layout is torch.strided
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        ):
            with torch.no_grad():
                tensor_contents = _contents(tensor, values)
        elif (
            tensor.device.type == "cpu"
            and tensor.layout is torch.strided
            and not tensor.is_nested
            and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        ):
            session.mode.host.fill(tensor.untyped_storage())
        return original(tensor, tensor_contents=tensor_contents)

    _tensor_str._str = faultline


def _contents(tensor, values) -> str:
    """The numbers between "tensor(" and ")". A large tensor is one stand-in, expanded: only its corners are written."""
    host = values.view(tensor.detach())
    if host is None:
        host = torch.full((), values.stand_in(tensor), dtype=tensor.dtype).expand(tensor.size())
    return _tensor_str._tensor_str(host, len("tensor(")) if host.numel() else "[]"
