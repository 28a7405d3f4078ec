"""Stand-ins for libraries that are not installed here: what programs use of them, with the sizes that their documentation and sources give.

Each part is made of PyTorch's operations that take the same memory. What is not here is a sentence that names it, and no verdict.
"""

from __future__ import annotations

import math

import torch

from ...session.unplannable import Unplannable
from . import fused_layers, triton

F = torch.nn.functional


class Library:
    def __init__(self, root: str, version: str, source: str, parts: dict, any_part: bool = False):
        self.root, self.version, self.source, self._parts, self._any = root, version, source, parts, any_part

    def has(self, name: str) -> bool:
        return name == self.root or self._any or any(p == name or p.startswith(name + ".") for p in self._parts)

    def build(self, session, module) -> None:
        name = module.__name__
        module.__faultline_stand_in__ = True
        if name == self.root:
            module.__version__ = self.version
            session.notes.add(
                "instead",
                f"{self.root} is not installed here: a stand-in for version {self.version} was planned, with {self.source}",
                verdict=f"with a stand-in for {self.root}",
            )
        vars(module).update(self._parts.get(name, lambda _session: {})(session))

        def missing(attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            if self._any:
                return _Anything(f"{name}.{attribute}")
            raise Unplannable(
                f"{name}.{attribute} is not known to a dry run, and {self.root} is not installed here: install it, or say with --op-memory what its operations take"
            )

        module.__getattr__ = missing


# --- flash_attn


def _needs_ampere(session, *tensors) -> None:
    """As the library itself refuses."""
    if session.mode.gpu.compute_capability < (8, 0):
        raise RuntimeError("FlashAttention only supports Ampere GPUs or newer.")
    if any(t.dtype not in (torch.float16, torch.bfloat16) for t in tensors):
        raise RuntimeError("FlashAttention only support fp16 and bf16 data type")


def _flash_attn(session) -> dict:
    def attend(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, *_rest, return_attn_probs=False, **_options):
        _needs_ampere(session, q, k, v)
        width = q.size(-1)
        if width % 8:  # padded, and the result cut
            q, k, v = (F.pad(t, (0, 8 - width % 8)) for t in (q, k, v))
        scale = softmax_scale if softmax_scale is not None else 1 / math.sqrt(width)
        result = torch.ops.aten._scaled_dot_product_flash_attention(
            *(t.transpose(1, 2) for t in (q, k, v)), dropout_p, causal, False, scale=scale
        )
        out = result[0].transpose(1, 2)[..., :width]
        return (out, result[1], None) if return_attn_probs else out

    def attend_varlen(
        q,
        k,
        v,
        cu_seqlens_q,
        cu_seqlens_k,
        max_seqlen_q,
        max_seqlen_k,
        dropout_p=0.0,
        softmax_scale=None,
        causal=False,
        *_rest,
        return_attn_probs=False,
        **_options,
    ):
        _needs_ampere(session, q, k, v)
        scale = softmax_scale if softmax_scale is not None else 1 / math.sqrt(q.size(-1))
        result = torch.ops.aten._flash_attention_forward(
            q,
            k,
            v,
            cu_seqlens_q,
            cu_seqlens_k,
            int(max_seqlen_q),
            int(max_seqlen_k),
            dropout_p,
            causal,
            False,
            scale=scale,
        )
        return (result[0], result[1], None) if return_attn_probs else result[0]

    def with_cache(q, k_cache, v_cache, k=None, v=None, *_rest, softmax_scale=None, causal=False, **_options):
        with torch.no_grad():
            return attend(q, k_cache, v_cache, 0.0, softmax_scale, causal)

    return {
        "flash_attn_func": attend,
        "flash_attn_qkvpacked_func": lambda qkv, *args, **kwargs: attend(*qkv.unbind(2), *args, **kwargs),
        "flash_attn_kvpacked_func": lambda q, kv, *args, **kwargs: attend(q, *kv.unbind(2), *args, **kwargs),
        "flash_attn_varlen_func": attend_varlen,
        "flash_attn_varlen_qkvpacked_func": lambda qkv, cu, most, *args, **kwargs: attend_varlen(
            *qkv.unbind(1), cu, cu, most, most, *args, **kwargs
        ),
        "flash_attn_varlen_kvpacked_func": lambda q, kv, *args, **kwargs: attend_varlen(
            q, *kv.unbind(1), *args, **kwargs
        ),
        "flash_attn_with_kvcache": with_cache,
    }


def _padding(_session) -> dict:
    """flash_attn.bert_padding: rows that are not padding, and back."""

    def index_first_axis(x, indices):
        return x[indices]

    def unpad_input(hidden_states, attention_mask, unused_mask=None):
        lengths = attention_mask.sum(dim=-1, dtype=torch.int32)
        indices = torch.nonzero(attention_mask.flatten(), as_tuple=False).flatten()
        most = int(lengths.max().item())
        ends = F.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
        rows = hidden_states.reshape(-1, *hidden_states.shape[2:])[indices]
        return rows, indices, ends, most, lengths

    def pad_input(hidden_states, indices, batch, seqlen):
        out = torch.zeros(
            (batch * seqlen, *hidden_states.shape[1:]), device=hidden_states.device, dtype=hidden_states.dtype
        )
        return out.index_copy(0, indices, hidden_states).view(batch, seqlen, *hidden_states.shape[1:])

    return {
        "index_first_axis": index_first_axis,
        "unpad_input": unpad_input,
        "pad_input": pad_input,
        "index_put_first_axis": lambda values, indices, first: torch.zeros(
            (first, *values.shape[1:]), device=values.device, dtype=values.dtype
        ).index_copy(0, indices, values),
    }


# --- xformers


class LowerTriangularMask:
    def __init__(self, *_args, **_kwargs):
        pass

    def to(self, *_args, **_kwargs):
        return self


def _xformers_ops(session) -> dict:
    def memory_efficient_attention(query, key, value, attn_bias=None, p=0.0, scale=None, *, op=None, output_dtype=None):
        if query.dim() == 5:  # (batch, rows, groups, heads, width)
            query, key, value = (t.flatten(2, 3) for t in (query, key, value))
        single = query.dim() == 3
        if single:
            query, key, value = (t.unsqueeze(2) for t in (query, key, value))
        causal = isinstance(attn_bias, LowerTriangularMask)
        if attn_bias is not None and not causal and not isinstance(attn_bias, torch.Tensor):
            raise Unplannable(f"xformers's mask {type(attn_bias).__name__} is not known to a dry run")
        mask = attn_bias if isinstance(attn_bias, torch.Tensor) else None
        q, k, v = (t.transpose(1, 2) for t in (query, key, value))
        low = q.dtype in (torch.float16, torch.bfloat16)
        if low and mask is None and session.mode.gpu.compute_capability >= (8, 0) and q.size(-1) <= 256:
            out = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, p, causal, False, scale=scale)[0]
        else:
            needs = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
            if mask is not None and mask.dim() == 3:
                mask = mask.view(q.size(0), -1, *mask.shape[1:]) if not single else mask.unsqueeze(1)
            out = torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, mask, needs, p, causal, scale=scale)[
                0
            ]
        out = out.transpose(1, 2)
        return out.squeeze(2) if single else out

    return {"memory_efficient_attention": memory_efficient_attention, "LowerTriangularMask": LowerTriangularMask}


def _xformers_masks(_session) -> dict:
    return {"LowerTriangularMask": LowerTriangularMask}


# --- triton


class _Anything:
    """A name of a language that is only read by a compiler which is not here."""

    def __init__(self, name: str):
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(f"{self.__name__}.{name}")

    def __call__(self, *args, **_kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getitem__(self, _key):
        return self


def _triton(session) -> dict:
    class Kernel:
        def __init__(self, function):
            self.fn, self.__name__, self.__doc__ = function, getattr(function, "__name__", "kernel"), function.__doc__

        def __getitem__(self, _grid):
            return self.run

        def run(self, *args, **kwargs):
            return triton.launched(session, args, kwargs)

        def __call__(self, *args, **kwargs):
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")

    class Config:
        def __init__(self, kwargs, num_warps=4, num_stages=3, **options):
            self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages
            vars(self).update(options)

    def jit(function=None, **_options):
        return Kernel if function is None else Kernel(function)

    def tuned(*_args, **_options):
        return lambda kernel: kernel

    return {
        "jit": jit,
        "autotune": tuned,
        "heuristics": tuned,
        "Config": Config,
        "cdiv": lambda a, b: -(-a // b),
        "next_power_of_2": lambda n: 1 << max(int(n) - 1, 0).bit_length(),
        "set_allocator": lambda allocator: None,
    }


LIBRARIES = {
    library.root: library
    for library in (
        Library(
            "flash_attn",
            "2.8.3",
            "the sizes of its documentation and sources",
            {
                "flash_attn": _flash_attn,
                "flash_attn.flash_attn_interface": _flash_attn,
                "flash_attn.bert_padding": _padding,
            },
        ),
        Library(
            "xformers",
            "0.0.35",
            "the sizes of its documentation and sources",
            {
                "xformers": lambda _session: {},
                "xformers.ops": _xformers_ops,
                "xformers.ops.fmha": lambda session: {**_xformers_ops(session), **_xformers_masks(session)},
                "xformers.ops.fmha.attn_bias": _xformers_masks,
            },
        ),
        Library(
            "apex",
            "0.1",
            "the sizes of its documentation and sources",
            {
                "apex": lambda _session: {},
                "apex.normalization": fused_layers.normalization,
                "apex.normalization.fused_layer_norm": fused_layers.normalization,
                "apex.optimizers": fused_layers.optimizers,
            },
        ),
        Library("triton", "3.9.0", "kernels that are not launched", {"triton": _triton}, any_part=True),
    )
}
