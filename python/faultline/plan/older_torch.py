"""What differs between the versions of PyTorch that a dry run serves (2.1 and newer), each chosen by what is found."""
from __future__ import annotations

import abc

import torch

OutOfMemoryError = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError

_set_version = torch._C._autograd._unsafe_set_version_counter
try:
    _set_version((torch.empty(0),), (0,))
except TypeError:
    set_version = _set_version
else:
    def set_version(tensor: torch.Tensor, version: int) -> None:
        """How often the tensor counts as changed."""
        _set_version((tensor,), (version,))


if hasattr(torch, "get_autocast_dtype"):
    def autocast_dtype() -> torch.dtype | None:
        """The type to which autocast casts on the GPU; None while it is off."""
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
else:
    def autocast_dtype() -> torch.dtype | None:
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def _base(name: str) -> type:
    """What PyTorch's own streams and events are derived from, where that is a class of Python: torch._dynamo insists on it."""
    found = getattr(getattr(torch, "_streambase", None), name, None)
    return found if isinstance(found, abc.ABCMeta) else object


StreamBase, EventBase = _base("_StreamBase"), _base("_EventBase")
