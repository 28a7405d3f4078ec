"""flex_attention: called eagerly it makes the whole matrix of scores, as PyTorch does then; inside a compiled function one fused kernel, which does not.

What the fused kernel takes is what PyTorch's compiler allocates for it: the result and a sum for each row; in backward the gradients, and another number for each row.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types

import torch

from ...._import_watch import ImportWatch
from . import compiled

Tensor = torch.Tensor
_MODULE = "torch.nn.attention.flex_attention"


def install(session) -> None:
    if _MODULE in sys.modules:
        _install(session, sys.modules[_MODULE])
    else:
        ImportWatch((_MODULE,), lambda _name, module: _install(session, module))


def _install(session, module) -> None:
    implementation = importlib.import_module("torch._higher_order_ops.flex_attention")
    forward, backward = implementation.flex_attention, implementation.flex_attention_backward
    mode = type(session.mode)

    @forward.py_impl(mode)
    def plain(dry, *args):
        with dry:
            return implementation.sdpa_dense(*args)

    @backward.py_impl(mode)
    def plain_backward(dry, *args):
        with dry:
            return implementation.sdpa_dense_backward(*args)

    def without_tracing(score_mod, _index_values, _other_buffers):
        """The function's gradient is a matrix like the scores, made of them by one product, and one tensor for each that it takes from around it."""

        def joint(score, b, h, m, n, gradient, *buffers):
            is_plain = getattr(score_mod, "__name__", "") == "_identity"
            return [gradient if is_plain else gradient * 1, None, None, None, None, *map(torch.zeros_like, buffers)]

        return score_mod, joint

    implementation.create_fw_bw_graph = without_tracing
    gives_most = "max_scores" in inspect.getsource(implementation.math_attention)

    def planned(query, key, value, score_mod, block_mask, scale, kernel_options, *buffers):
        if not query.is_cuda:
            return forward(query, key, value, score_mod, block_mask, scale, kernel_options, *buffers)
        score_mod, captured = _with_captured(score_mod)
        if compiled.is_compiled():
            session.notes.add(
                "kernel",
                "flex_attention was planned as compiled: one kernel that does not make the scores; what its triton code takes beside results is an estimate",
            )
            out, sums, most = _Fused.apply(query, key, value, bool((kernel_options or {}).get("OUTPUT_MAX")), *captured)
            return (out, sums, most) if gives_most else (out, sums)
        session.notes.add(
            "mode",
            "flex_attention was called without torch.compile: planned as PyTorch runs it then, with the whole matrix of scores in memory",
        )
        return forward(query, key, value, score_mod, block_mask, scale, kernel_options, tuple(captured))

    module.flex_attention_hop = planned
    _make_masks_as_compiled(session, module)


def _with_captured(score_mod):
    """The function, and the tensors with gradients that it takes from around it, which are given to it behind its arguments."""
    if not isinstance(score_mod, types.FunctionType):
        return score_mod, []
    code, around = score_mod.__code__, score_mod.__globals__
    closed = dict(zip(code.co_freevars, map(_inside, score_mod.__closure__ or ())))
    found = {**{name: around.get(name) for name in code.co_names}, **closed}
    found = {name: t for name, t in found.items() if isinstance(t, Tensor) and t.requires_grad}
    if not found:
        return score_mod, []

    def called(*args):
        given = dict(zip(found, args[-len(found) :]))
        cells = tuple(
            types.CellType(given[name]) if name in given else cell
            for name, cell in zip(code.co_freevars, score_mod.__closure__ or ())
        )
        copy = types.FunctionType(code, {**around, **given}, score_mod.__name__, score_mod.__defaults__, cells)
        return copy(*args[: -len(found)])

    return called, list(found.values())


def _inside(cell):
    try:
        return cell.cell_contents
    except ValueError:  # not set yet
        return None


def _laid_out_as(size, like: Tensor) -> Tensor:
    """A tensor whose dimensions lie in memory in the order of another's."""
    order = sorted(range(len(size)), key=lambda d: like.stride(d), reverse=True)
    made = like.new_empty([size[d] for d in order])
    return made.permute([order.index(d) for d in range(len(size))])


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, output_most, *captured):
        rows = query.shape[:3]
        out = _laid_out_as((*rows, value.size(-1)), query)
        sums = query.new_empty(rows, dtype=torch.float32)
        most = query.new_empty(rows, dtype=torch.float32)  # made in any case
        if not output_most:
            most = query.new_empty(0, dtype=torch.float32)
        ctx.mark_non_differentiable(most)
        ctx.save_for_backward(query, key, value, out, sums, *captured)
        return out, sums, most

    @staticmethod
    def backward(ctx, grad_out, grad_sums, _grad_most):
        query, key, value, _out, sums, *captured = ctx.saved_tensors
        delta = torch.empty_like(sums)
        grad_query = _laid_out_as(query.shape, query)
        grads = []
        for tensor in (key, value):
            each = _laid_out_as((query.size(0), *tensor.shape[1:]), tensor)
            grads.append(each.sum(0, keepdim=True) if query.size(0) > tensor.size(0) else each)
        del delta
        return grad_query, *grads, None, *(torch.zeros_like(t) for t in captured)


def _make_masks_as_compiled(session, module) -> None:
    """create_block_mask inside a compiled function (or with _compile=True) makes no whole mask on its way."""
    original = module.create_block_mask

    def create_block_mask(*args, **kwargs):
        if not (compiled.is_compiled() or kwargs.pop("_compile", False)):
            return original(*args, **kwargs)
        kwargs.pop("_compile", None)
        session.memory.unseen = True
        try:
            mask = original(*args, **kwargs)
        finally:
            session.memory.unseen = False
        for name, tensor in list(vars(mask).items()):
            if isinstance(tensor, Tensor):
                setattr(mask, name, tensor.clone())
        return mask

    module.create_block_mask = create_block_mask
