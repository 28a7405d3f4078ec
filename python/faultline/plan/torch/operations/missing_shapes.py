"""What results look like where PyTorch has neither a meta kernel nor a decomposition, or one that refuses what GPUs take."""

from __future__ import annotations

import functools

import torch

from .outcome import flatten, replace_tensors

aten = torch.ops.aten
RULES: dict = {}
_MOST = 1 << 22  # elements that the host may be asked to compute with


def _rule(name: str, unless_known: bool = False):
    """The functions here get meta tensors and give meta tensors. unless_known: where PyTorch has a meta kernel, that is asked."""

    def keep(function):
        packet = getattr(aten, name, None)
        if packet is not None and not (
            unless_known and torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta")
        ):
            RULES[packet.default] = function
        return function

    return keep


@_rule("_thnn_fused_gru_cell")
def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    return torch.empty_like(hx), hx.new_empty((hx.size(0), 5 * hx.size(1)))


@_rule("_thnn_fused_gru_cell_backward")
def gru_cell_backward(grad_hy, workspace, has_bias):
    batch, width = grad_hy.size()
    input_gates, hidden_gates = (workspace.new_empty((batch, 3 * width)) for _ in range(2))
    biases = [workspace.new_empty((3 * width,)) for _ in range(2)] if has_bias else [None, None]
    return input_gates, hidden_gates, torch.empty_like(grad_hy), *biases


@_rule("_grouped_mm")
def grouped_mm(first, second, offs=None, bias=None, out_dtype=None):
    """Each group's product; rows of the result begin at multiples of sixteen bytes."""
    dtype = out_dtype or first.dtype
    rows, columns = first.size(-2), second.size(-1)
    batch = (
        [offs.size(0)]
        if first.dim() == second.dim() == 2
        else [first.size(0)]
        if first.dim() == second.dim() == 3
        else []
    )
    step = 16 // dtype.itemsize
    width = -(-columns // step) * step
    return torch.empty((*batch, rows, width), dtype=dtype, device=first.device)[..., :columns]


@_rule("_padded_dense_to_jagged_forward", unless_known=True)
def padded_to_jagged(dense, offsets, total_L=None):
    rows = total_L if total_L is not None else dense.size(0) * dense.size(1)
    return dense.new_empty((rows, *dense.shape[2:]))


# Of 2.3 and 2.4, which keep these where only fake tensors find them:


@_rule("_scaled_dot_product_flash_attention", unless_known=True)
def flash_attention(query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, scale=None):
    out = torch.empty_like(query.transpose(1, 2)).transpose(1, 2)
    seed, offset = (query.new_empty((), dtype=torch.int64) for _ in range(2))
    return (
        out,
        query.new_empty(query.size()[:3], dtype=torch.float32),
        None,
        None,
        query.size(2),
        key.size(2),
        seed,
        offset,
        query.new_empty(0),
    )


@_rule("_scaled_dot_product_efficient_attention", unless_known=True)
def efficient_attention(query, key, value, attn_bias, compute_log_sumexp, dropout_p=0.0, is_causal=False, scale=None):
    batch, heads, length = query.size()[:3]
    out = query.new_empty((batch, length, heads, value.size(3))).transpose(1, 2)
    sums = query.new_empty((batch, heads, -(-length // 32) * 32 if compute_log_sumexp else 0), dtype=torch.float32)
    return (out, sums, *(query.new_empty((), dtype=torch.int64) for _ in range(2)))


# Of releases before 2.13, which run whole layers of nn.Transformer in one operation when they do not train:


@_rule("_transformer_encoder_layer_fwd", unless_known=True)
def encoder_layer(src, *_args, **_kwargs):
    return torch.empty_like(src)


@_rule("_native_multi_head_attention", unless_known=True)
def multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask=None,
    need_weights=True,
    average_attn_weights=True,
    mask_type=None,
):
    batch, length = query.size()[:2]
    heads = () if average_attn_weights else (num_head,)
    return torch.empty_like(query), query.new_empty((batch, *heads, length, key.size(1)) if need_weights else 0)


def of_each(func):
    """The _foreach_ operations that give new tensors: one for each that they read, or its norm."""
    name = func._schema.name[len("aten::_foreach_") :]
    if not func._schema.name.startswith("aten::_foreach_") or name.endswith("_") or not func._schema.returns:
        return None

    def rule(tensors, *_args, **_kwargs):
        return [t.new_empty(()) if name == "norm" else torch.empty_like(t) for t in tensors]

    return rule


def _statistic(x):
    """One number for each channel, in the type that kernels sum in."""
    return torch.empty(
        x.size(1), dtype=torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype, device=x.device
    )


# The parts of SyncBatchNorm.


@_rule("batch_norm_stats")
def batch_norm_stats(x, eps):
    return _statistic(x), _statistic(x)


@_rule("batch_norm_elemt")
def batch_norm_elemt(x, weight, bias, mean, invstd, eps):
    return torch.empty_like(x)


@_rule("batch_norm_gather_stats_with_counts")
def batch_norm_gather_stats_with_counts(x, mean, invstd, running_mean, running_var, momentum, eps, counts):
    return _statistic(x), _statistic(x)


@_rule("batch_norm_backward_reduce")
def batch_norm_backward_reduce(grad_out, x, mean, invstd, weight, input_g, weight_g, bias_g):
    of_weight = weight if weight is not None else mean
    return (
        *(torch.empty_like(mean) if input_g else mean.new_empty(0) for _ in range(2)),
        *(of_weight.new_empty(x.size(1) if wanted else 0) for wanted in (weight_g, bias_g)),
    )


@_rule("batch_norm_backward_elemt")
def batch_norm_backward_elemt(grad_out, x, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    return torch.empty_like(x)


def returns_what_it_writes(func):
    """An operation that gives nothing but the tensors it writes into (fused optimizers) needs no look."""
    returns, arguments = func._schema.returns, func._schema.arguments
    if any(r.alias_info is None or not r.alias_info.is_write for r in returns):
        return None
    names = [
        next(
            (
                a.name
                for a in arguments
                if a.alias_info is not None and a.alias_info.before_set == r.alias_info.before_set
            ),
            None,
        )
        for r in returns
    ]
    if None in names or not any(a.alias_info is not None and a.alias_info.is_write for a in arguments):
        return None

    def rule(*args, **kwargs):
        given = {**{a.name: value for a, value in zip(arguments, args)}, **kwargs}
        found = tuple(given[name] for name in names)
        return None if not found else found[0] if len(found) == 1 else found

    return rule


def from_host(func, args, kwargs):
    """The host's kernel, on ones: for small operands, and where there is one."""
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    if (
        not has("CPU")
        and not has("CompositeExplicitAutograd")
        or sum(t.numel() for t in flatten(args, kwargs)) > _MOST
        or any(a.alias_info is not None for a in func._schema.arguments)
    ):
        return None

    def rule(*args, **kwargs):
        host_args, host_kwargs = replace_tensors(args, kwargs, lambda t: torch.ones(t.size(), dtype=t.dtype))
        if "device" in host_kwargs:
            host_kwargs["device"] = torch.device("cpu")
        result = func(*host_args, **host_kwargs)
        return replace_tensors(
            (result,),
            {},
            lambda t: (
                t
                if t.layout is not torch.strided
                else torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta")
            ),
        )[0][0]

    return rule
