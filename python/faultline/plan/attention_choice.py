"""Which attention kernel PyTorch takes on the planned GPU, and scaled_dot_product_attention with it: PyTorch's own choice on this machine means nothing.

scaled_dot_product_attention tries cuDNN first on Hopper and data-centre Blackwell, otherwise flash, then
memory-efficient, cuDNN and at last the plain formula (math), and takes the first that accepts the inputs. The
conditions are those of PyTorch 2.11 for dense tensors on NVIDIA GPUs.
"""
from __future__ import annotations

import os
from typing import Any

import torch

from .older_torch import autocast_dtype

aten = torch.ops.aten
LOW = (torch.float16, torch.bfloat16)


def _order(capability: tuple[int, int]) -> tuple[str, ...]:
    deprioritized = os.environ.get("TORCH_CUDNN_SDPA_DEPRIORITIZED", "").lower() in ("1", "y", "yes", "true", "on")
    if capability[0] in (9, 10) and capability[1] in (0, 3) and not deprioritized:
        return "cudnn", "flash", "efficient", "math"
    return "flash", "efficient", "math", "cudnn"


def choose(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, dropout: float, causal: bool, scale: float | None,
           gqa: bool, needs_grad: bool, gpu: Any, enabled: dict[str, bool]) -> str:
    """The kernel's name; raises RuntimeError as PyTorch does when every kernel that fits is switched off."""
    capability = tuple(gpu.compute_capability)
    for kind in _order(capability):
        if kind == "math":
            if enabled.get("math", True):
                return kind
        elif enabled.get("mem_efficient" if kind == "efficient" else kind, True) and _shapes_fit(q, k, v):
            if _CHECKS[kind](q, k, v, mask, dropout, causal, gqa, needs_grad, capability):
                return kind
    raise RuntimeError("No available kernel. Aborting execution.")


def _shapes_fit(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> bool:
    """What every fused kernel asks: four dimensions, one batch size, some queries and keys."""
    if not q.dim() == k.dim() == v.dim() == 4:
        return False
    return q.size(0) == k.size(0) == v.size(0) and q.size(-2) > 0 and k.size(-2) > 0


def _heads_fit(q, k, v, gqa: bool, supports_gqa: bool, same_key_value: bool = True) -> bool:
    heads, keys, values = q.size(1), k.size(1), v.size(1)
    if gqa and supports_gqa:
        if same_key_value and keys != values:
            return False
        return heads % keys == 0 and (same_key_value or heads % values == 0)
    return heads == keys == values


def _last_stride_fits(q, k, v, mask, ignore_single: bool) -> bool:
    dense = q.stride(-1) == k.stride(-1) == v.stride(-1) == 1 or (ignore_single and q.size(-1) == 1)
    return dense and (mask is None or mask.stride(-1) == 1)


def _low_precision(tensors, capability) -> bool:
    allowed = LOW if capability[0] >= 8 else (torch.float16,)
    return tensors[0].dtype in allowed and all(t.dtype == tensors[0].dtype for t in tensors)


def _flash_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability) -> bool:
    if mask is not None or not (8, 0) <= capability <= (12, 1):
        return False
    d = q.size(-1)
    if not d == k.size(-1) == v.size(-1) or d > 256:
        return False
    small_memory = (8, 6) <= capability <= (8, 9) or (12, 0) <= capability <= (12, 1)
    if needs_grad and small_memory and (192 < d <= 224 or d > 224 and dropout > 0):
        return False
    if causal and q.size(-2) != k.size(-2):
        return False
    return _low_precision((q, k, v), capability) and _heads_fit(q, k, v, gqa, True) and _last_stride_fits(q, k, v, mask, True)


def _efficient_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability) -> bool:
    if not (5, 0) <= capability <= (12, 1):
        return False
    half = q.dtype in LOW
    alignment = 4 if capability[0] >= 8 else 1
    if capability[0] >= 8 or (capability[0] >= 7 and half):
        alignment = max(alignment, 8 if half else 4)
    d, dv = q.size(-1), v.size(-1)
    if d != k.size(-1) or d % alignment or dv % alignment or d == 0 or dv == 0:
        return False
    allowed = (torch.float16, torch.float32, torch.bfloat16) if capability[0] >= 8 else (torch.float16, torch.float32)
    if q.dtype not in allowed or not q.dtype == k.dtype == v.dtype:
        return False
    return _heads_fit(q, k, v, gqa, False) and _last_stride_fits(q, k, v, mask, False)


def _mask_fits_cudnn(q, k, mask) -> bool:
    if mask is None:
        return True
    if mask.requires_grad or mask.size(-2) not in (1, q.size(2)) or mask.size(-1) not in (1, k.size(2)):
        return False
    return mask.dim() == 2 or mask.dim() == 4 and mask.size(0) in (1, q.size(0)) and mask.size(1) in (1, q.size(1))


def _cudnn_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability) -> bool:
    """For the cuDNN that ships with PyTorch 2.11 (newer than 9.15)."""
    if not (8, 0) <= capability <= (12, 1) or not _low_precision((q, k, v), capability) or not _mask_fits_cudnn(q, k, mask):
        return False
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        return False
    d, dv = q.size(3), v.size(3)
    limit = 256 if capability == (9, 0) else 192 if capability[0] == 10 and (d, dv) == (192, 128) else 128
    if d > limit or dv > limit or d % 8 or dv % 8:
        return False
    if k.size(2) == 1 or q.size(2) == 1 and dropout != 0.0:
        return False
    return _heads_fit(q, k, v, gqa, True, same_key_value=False) and _last_stride_fits(q, k, v, mask, True)


_CHECKS = {"flash": _flash_fits, "efficient": _efficient_fits, "cudnn": _cudnn_fits}


# --- the function

def _float_mask(mask, dtype):
    """PyTorch turns a boolean mask into numbers to add."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    numbers = torch.zeros_like(mask, dtype=dtype)
    return numbers.masked_fill_(mask.logical_not(), float("-inf"))


def _for_efficient(mask, query, key):
    """Rows of the mask begin at multiples of sixteen elements: it is padded where they do not."""
    if mask is None:
        return None
    length = key.size(2)
    if mask.size(-1) == length and length % 16 and mask.stride(-1) == 1 and mask.dim() and any(s % 16 for s in mask.stride()[:-1] if s):
        mask = torch.nn.functional.pad(mask, (0, 16 - length % 16)).narrow(-1, 0, length)
    return mask.expand(query.size(0), query.size(1), query.size(2), length)


def _padded(tensor, multiple=8):
    rest = tensor.size(-1) % multiple
    return torch.nn.functional.pad(tensor, (0, multiple - rest)) if rest else tensor


def install(session) -> None:
    original = torch.nn.functional.scaled_dot_product_attention

    def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if not query.is_cuda:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if (dtype := autocast_dtype()) is not None:  # on a GPU autocast casts before the choice
            query, key, value = (t.to(dtype) if t.is_floating_point() and t.dtype is not torch.float64 else t for t in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        backends = torch.backends.cuda
        enabled = {"flash": backends.flash_sdp_enabled(), "mem_efficient": backends.mem_efficient_sdp_enabled(), "math": backends.math_sdp_enabled(), "cudnn": backends.cudnn_sdp_enabled()}
        grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        with torch.autocast("cuda", enabled=False):
            kind = choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, grad, session.gpus[query.get_device()], enabled)
            if kind == "flash":
                width = query.size(-1)
                real_scale = scale if scale is not None else width ** -0.5
                out = aten._scaled_dot_product_flash_attention(_padded(query), _padded(key), _padded(value), dropout_p, is_causal, False, scale=real_scale)[0]
                return out[..., :width] if out.size(-1) != width else out
            if kind == "efficient":
                mask = _for_efficient(_float_mask(attn_mask, query.dtype), query, key)
                return aten._scaled_dot_product_efficient_attention(query, key, value, mask, grad, dropout_p, is_causal, scale=scale)[0]
            if kind == "cudnn":
                mask = _float_mask(attn_mask, query.dtype)
                if mask is not None:
                    mask = mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
                return aten._scaled_dot_product_cudnn_attention(query, key, value, mask, grad, dropout_p, is_causal, False, scale=scale)[0]
            return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]

    torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention
    torch._C._nn.scaled_dot_product_attention = scaled_dot_product_attention
