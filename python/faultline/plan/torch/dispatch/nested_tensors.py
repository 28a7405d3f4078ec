"""Nested tensors on the planned GPU.

Those of the layout torch.jagged are made of tensors as any other (their values and where each one begins), and PyTorch's own Python code answers for them. Those of the layout
torch.strided are C++ without a way in: they are planned as jagged ones, which hold the same bytes, and the report says so.
"""

from __future__ import annotations

import functools
import sys

import torch

from ...._import_watch import ImportWatch
from ...session.unplannable import Unplannable

LOW = (torch.float16, torch.bfloat16)
_ATTENTION = "torch.nested._internal.sdpa"


def install(session) -> None:
    if not hasattr(torch, "jagged"):  # before 2.1.1
        return
    for name in ("nested_tensor", "as_nested_tensor"):
        setattr(torch.nested, name, _as_jagged(session, getattr(torch.nested, name)))
    if _ATTENTION in sys.modules:
        _choose_attention(session, sys.modules[_ATTENTION])
    else:
        ImportWatch((_ATTENTION,), lambda _name, module: _choose_attention(session, module))


def _as_jagged(session, original):
    @functools.wraps(original)
    def faultline(given, *args, layout=None, device=None, **kwargs):
        parts = list(given) if isinstance(given, (list, tuple)) else []
        first = next((p for p in parts if isinstance(p, torch.Tensor)), None)
        place = torch.device(device) if device is not None else getattr(first, "device", torch.device("cpu"))
        if place.type == "cuda" and layout in (None, torch.strided) and parts:
            _tell(session.notes)
            layout = torch.jagged
        return original(given, *args, layout=layout, device=device, **kwargs)

    return faultline


def _tell(notes) -> None:
    notes.add(
        "mode", "nested tensors of the layout torch.strided were planned as jagged ones, which hold the same bytes"
    )


def move(dry, source, device, dtype=None):
    """A nested tensor of the host, to the GPU."""
    _tell(dry.notes)
    with torch.utils._python_dispatch._disable_current_modes():
        parts = [part.clone() for part in source.unbind()]
    if len({tuple(part.shape[1:]) for part in parts}) > 1:
        raise Unplannable(
            "nested tensors on the GPU that differ in more than their first size are not known to a dry run"
        )
    with dry:
        return torch.nested.as_nested_tensor(
            [torch.ops.aten._to_copy(part, device=device, dtype=dtype) for part in parts], layout=torch.jagged
        )


def _choose_attention(session, module) -> None:
    """The kernels that PyTorch finds for the planned GPU, in its own order."""

    def flash(params, debug=False):
        return (
            torch.backends.cuda.flash_sdp_enabled()
            and params.attn_mask is None
            and params.query.dtype in LOW
            and params.query.size(-1) <= 256
            and session.mode.gpu.compute_capability >= (8, 0)
        )

    def efficient(params, debug=False):
        return torch.backends.cuda.mem_efficient_sdp_enabled() and params.attn_mask is None

    for name, answer in (
        ("can_use_flash_attention", flash),
        ("can_use_efficient_attention", efficient),
        ("can_use_cudnn_attention", lambda params, debug=False: False),
    ):
        if hasattr(module, name):
            setattr(module, name, answer)
