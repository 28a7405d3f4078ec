"""Which attention kernel PyTorch takes on the planned GPU, and scaled_dot_product_attention with it: PyTorch's own choice on this machine means nothing.

scaled_dot_product_attention tries its kernels (flash, memory-efficient, cuDNN's, at last the plain formula, "math") in an order that depends on the
release and the GPU, and takes the first that accepts the inputs. Order and limits are those of releases.py, for dense tensors on NVIDIA GPUs.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..release import releases
from ..release.older_torch import autocast_dtype
from ..release.releases import Release

aten = torch.ops.aten
LOW = (torch.float16, torch.bfloat16)
_KINDS = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}  # torch.nn.attention.SDPBackend
_wanted_order = getattr(torch._C, "_get_sdp_priority_order", list)
_usual_order = _wanted_order()


def choose(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None,
    dropout: float,
    causal: bool,
    scale: float | None,
    gqa: bool,
    needs_grad: bool,
    gpu: Any,
    enabled: dict[str, bool],
    release: Release | None = None,
) -> str:
    """The kernel's name; raises RuntimeError as PyTorch does when every kernel that fits is switched off."""
    release = release or releases.now()
    capability = tuple(gpu.compute_capability)
    order = release.attention_order(capability, q, k, needs_grad)
    if (wanted := _wanted_order()) != _usual_order:  # sdpa_kernel(..., set_priority=True)
        order = tuple(dict.fromkeys(_KINDS[number] for number in wanted if number in _KINDS))
    for kind in order:
        if kind == "math":
            if enabled.get("math", True):
                return kind
        elif enabled.get("mem_efficient" if kind == "efficient" else kind, True) and _shapes_fit(q, k, v):
            if _CHECKS[kind](q, k, v, mask, dropout, causal, gqa, needs_grad, capability, release):
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


def _flash_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability, release) -> bool:
    first = release.flash_is_first_version
    if mask is not None or not ((7, 5) if first else (8, 0)) <= capability <= release.attention_capabilities:
        return False
    d = q.size(-1)
    if not d == k.size(-1) == v.size(-1) or d > (128 if first else 256) or first and d % 8:
        return False
    if needs_grad and not release.flash_trains(capability, d, dropout):
        return False
    if causal and not first and q.size(-2) != k.size(-2):
        return False
    return (
        _low_precision((q, k, v), capability)
        and _heads_fit(q, k, v, gqa, True)
        and _last_stride_fits(q, k, v, mask, release.since(3))
    )


def _efficient_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability, release) -> bool:
    if not (5, 0) <= capability <= release.attention_capabilities:
        return False
    half = q.dtype in LOW
    alignment = 4 if capability[0] >= 8 else 1
    if capability[0] >= 8 or (capability[0] >= 7 and half):
        alignment = max(alignment, 8 if half else 4)
    d, dv = q.size(-1), v.size(-1)
    if d != k.size(-1) or d % alignment or dv % alignment or d == 0 or dv == 0:
        return False
    if release.since(13) and capability[0] >= 8 and any(t.storage_offset() % alignment for t in (q, k, v) if t.numel()):
        return False
    brain = capability[0] >= (6 if not release.since(2) else 8)
    if (
        q.dtype not in ((torch.float16, torch.float32, torch.bfloat16) if brain else (torch.float16, torch.float32))
        or not q.dtype == k.dtype == v.dtype
    ):
        return False
    return _heads_fit(q, k, v, gqa, False) and _last_stride_fits(q, k, v, mask, False)


def _mask_fits_cudnn(q, k, mask) -> bool:
    if mask is None:
        return True
    if mask.requires_grad or mask.size(-2) not in (1, q.size(2)) or mask.size(-1) not in (1, k.size(2)):
        return False
    return mask.dim() == 2 or mask.dim() == 4 and mask.size(0) in (1, q.size(0)) and mask.size(1) in (1, q.size(1))


def _cudnn_fits(q, k, v, mask, dropout, causal, gqa, needs_grad, capability, release) -> bool:
    if (
        not (8, 0) <= capability <= release.attention_capabilities
        or not _low_precision((q, k, v), capability)
        or not _mask_fits_cudnn(q, k, mask)
    ):
        return False
    if torch.are_deterministic_algorithms_enabled() and not torch.is_deterministic_algorithms_warn_only_enabled():
        return False
    d, dv = q.size(3), v.size(3)
    limit = release.cudnn_head_limit(capability, d, dv)
    if (
        d > limit
        or dv > limit
        or d % 8
        or dv % 8
        or not release.cudnn_takes_lengths(q.size(2), k.size(2), dropout)
        or not release.cudnn_drops_out(dropout)
    ):
        return False
    if release.since(13) and max(q.size(0), q.size(1)) > 65535:
        return False
    if release.cudnn_wide_heads and needs_grad and max(d, dv) > 128 and (d, dv) not in ((192, 128), (256, 256)):
        return False
    return (not release.since(8) or _heads_fit(q, k, v, gqa, True, same_key_value=False)) and _last_stride_fits(
        q, k, v, mask, True
    )


_CHECKS = {"flash": _flash_fits, "efficient": _efficient_fits, "cudnn": _cudnn_fits}


# --- the function


def _float_mask(mask, dtype, release, cudnn: bool = False):
    """PyTorch turns a boolean mask into numbers to add."""
    if mask is None or mask.dtype is not torch.bool:
        return mask
    if not release.since(5):
        return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), float("-inf"))
    if not release.since(6):
        return torch.where(
            mask.logical_not(),
            float("-inf"),
            torch.scalar_tensor(0.0, dtype=dtype, device="cpu" if cudnn else mask.device),
        )
    return torch.where(mask, 0.0, torch.scalar_tensor(float("-inf"), dtype=dtype, device=mask.device))


def _for_efficient(mask, query, key, release):
    """The rows of a mask begin at multiples of eight elements: it is copied into such rows where they do not, with eight more where its length is one."""
    if mask is None:
        return None
    shape = (query.size(0), query.size(1), query.size(2), key.size(2))
    step = 8 if release.since(2) else 16
    if not release.since(2):  # made whole first
        mask = mask.expand(shape)
        if mask.size(-1) % step == 0:
            return mask.contiguous() if any(s % step for s in mask.stride()[:-1]) else mask
    elif mask.stride(-1) == 1 and not any(s % step for s in mask.stride()[:-1]):
        return mask.expand(shape)
    length = mask.size(-1)
    return torch.nn.functional.pad(mask, (0, step - length % step)).narrow(-1, 0, length).expand(shape)


def _looks(*given) -> list[torch.Tensor]:
    """Of the same sizes and strides, and without memory."""
    return [torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta") for t in given]


def _padded(tensor, multiple=8):
    rest = tensor.size(-1) % multiple
    return torch.nn.functional.pad(tensor, (0, multiple - rest)) if rest else tensor


def _as_autocast(query, key, value, mask):
    """On a GPU autocast casts before the choice."""
    dtype = autocast_dtype()
    if dtype is None:
        return query, key, value, mask
    query, key, value = (
        t.to(dtype) if t.is_floating_point() and t.dtype is not torch.float64 else t for t in (query, key, value)
    )
    return query, key, value, mask.to(dtype) if mask is not None and mask.is_floating_point() else mask


def _enabled() -> dict:
    backends = torch.backends.cuda
    return {
        "flash": backends.flash_sdp_enabled(),
        "mem_efficient": backends.mem_efficient_sdp_enabled(),
        "math": backends.math_sdp_enabled(),
        "cudnn": getattr(backends, "cudnn_sdp_enabled", lambda: False)(),
    }


def _flash(query, key, value, dropout_p, is_causal, scale, release):
    if release.flash_is_first_version:
        return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    width = query.size(-1)
    real_scale = scale if scale is not None else width**-0.5
    out = aten._scaled_dot_product_flash_attention(
        _padded(query), _padded(key), _padded(value), dropout_p, is_causal, False, scale=real_scale
    )[0]
    return out[..., :width] if out.size(-1) != width else out


def _efficient(query, key, value, mask, keeps_sums, dropout_p, is_causal, scale, release):
    mask = _for_efficient(_float_mask(mask, query.dtype, release), query, key, release)
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, keeps_sums, dropout_p, is_causal, scale=scale
    )[0]


def _cudnn(query, key, value, mask, grad, dropout_p, is_causal, scale, release):
    mask = _float_mask(mask, query.dtype, release, cudnn=True)
    if mask is not None:
        mask = mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    return aten._scaled_dot_product_cudnn_attention(
        query, key, value, mask, grad, dropout_p, is_causal, False, scale=scale
    )[0]


def _made_contiguous(session, chosen, query, key, value) -> bool:
    """Whether the strides of the inputs alone keep them from a fused kernel, and it is to be tried without."""
    if all(t.stride(-1) == 1 for t in (query, key, value)) or not session.strided_attention:
        return False
    fused = chosen(*(t.contiguous() if t.stride(-1) != 1 else t for t in _looks(query, key, value)))
    return fused != "math" and session.strided_attention(fused)


def install(session) -> None:
    original = torch.nn.functional.scaled_dot_product_attention
    release = releases.now()

    def scaled_dot_product_attention(
        query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
    ):
        grouped = {"enable_gqa": True} if enable_gqa else {}
        if not query.is_cuda or query.is_nested:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, **grouped)
        query, key, value, attn_mask = _as_autocast(query, key, value, attn_mask)
        required = any(t.requires_grad for t in (query, key, value))
        grad = torch.is_grad_enabled() and required
        chosen = functools.partial(
            choose,
            mask=attn_mask,
            dropout=dropout_p,
            causal=is_causal,
            scale=scale,
            gqa=enable_gqa,
            needs_grad=grad,
            gpu=session.gpus[query.get_device()],
            enabled=_enabled(),
            release=release,
        )
        with torch.autocast("cuda", enabled=False):
            kind = chosen(query, key, value)
            if kind == "math" and _made_contiguous(session, chosen, query, key, value):
                query, key, value = (t.contiguous() for t in (query, key, value))
                return scaled_dot_product_attention(
                    query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa
                )
            if kind == "flash":
                return _flash(query, key, value, dropout_p, is_causal, scale, release)
            if kind == "efficient":
                keeps_sums = required if release.log_sums_without_grad_mode else grad
                return _efficient(query, key, value, attn_mask, keeps_sums, dropout_p, is_causal, scale, release)
            if kind == "cudnn":
                return _cudnn(query, key, value, attn_mask, grad, dropout_p, is_causal, scale, release)
            attn_mask = _float_mask(attn_mask, query.dtype, release)
            return aten._scaled_dot_product_attention_math(
                query, key, value, attn_mask, dropout_p, is_causal, None, scale=scale, **grouped
            )[0]

    torch.nn.functional.scaled_dot_product_attention = scaled_dot_product_attention
    torch._C._nn.scaled_dot_product_attention = scaled_dot_product_attention
