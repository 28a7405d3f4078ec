"""scaled_dot_product_attention with the kernel that PyTorch would choose on the planned GPU.

PyTorch chooses by the GPU it runs on, so its own choice on this machine means nothing; attention.choose follows its rules for the planned one.
"""
from __future__ import annotations

import torch

from . import attention

aten = torch.ops.aten


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
    gpu = session.gpu

    def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if not query.is_cuda:
            return original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cuda"):  # on a GPU autocast casts before the choice
            dtype = torch.get_autocast_dtype("cuda")
            query, key, value = (t.to(dtype) if t.is_floating_point() and t.dtype is not torch.float64 else t for t in (query, key, value))
            if attn_mask is not None and attn_mask.is_floating_point():
                attn_mask = attn_mask.to(dtype)
        backends = torch.backends.cuda
        enabled = {"flash": backends.flash_sdp_enabled(), "mem_efficient": backends.mem_efficient_sdp_enabled(), "math": backends.math_sdp_enabled(), "cudnn": backends.cudnn_sdp_enabled()}
        grad = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
        with torch.autocast("cuda", enabled=False):
            kind = attention.choose(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, grad, gpu, enabled)
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
