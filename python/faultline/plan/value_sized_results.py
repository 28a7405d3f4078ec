"""Results whose size depends on values: computed where the values are known, else the largest that can come out."""

from __future__ import annotations

import torch

from . import chosen, loose_sizes, shares, temporaries, tensors
from .operations import handles, overloads
from .outcome import Outcome, flatten, replace_tensors

aten = torch.ops.aten


def _dynamic(dry, func, args, kwargs, worst_size, text: str, is_loose: bool = True, counts_all: bool = False):
    """Runs on the values where they are known; else the largest result that can come out. counts_all: stand-ins for values do not say how many are chosen."""
    operands = flatten(args, kwargs)
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in operands]
    assumed = any(t.is_cuda and dry.values.is_assumed(t) for t in operands)
    if all(h is not None for h in hosts) and not (assumed and counts_all):
        order = iter(hosts)
        host_args, host_kwargs = replace_tensors(args, kwargs, lambda _t: next(order))
        result = func(*host_args, **host_kwargs)
        return _bring(dry, func, args, kwargs, result, assumed, operands)
    dry.notes.at_most(text)
    looks = worst_size()
    if not is_loose:
        return _bring_unknown(dry, func, args, kwargs, looks, operands)
    with loose_sizes.made_with(dry.memory, looks[0][0][0]):
        return _bring_unknown(dry, func, args, kwargs, looks, operands)


def from_values(dry, func, args, kwargs, operands):
    """The result where all values are computed (--real); None: they are not known."""
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in operands]
    if any(h is None for h in hosts) or any(t.is_cuda and dry.values.is_assumed(t) for t in operands):
        return None
    order = iter(hosts)
    host_args, host_kwargs = replace_tensors(args, kwargs, lambda _t: next(order))
    with torch.utils._python_dispatch._disable_current_modes():
        result = func(*host_args, **host_kwargs)
    return _bring(dry, func, args, kwargs, result, False, operands)


def allocate(dry, func, size, stride, dtype, operands, stack=-1):
    tensor = tensors.make(size, stride, dtype)
    dry._born(tensor, Outcome.named(func, operands), stack)
    return tensor


def bring_all(dry, func, args, kwargs, looks, operands) -> list:
    """Tensors of these looks, (size, stride, dtype), with what the kernel takes beside them."""
    made: list = []
    stack = dry.memory.stacks.here()

    def make():
        made.extend(allocate(dry, func, size, stride, dtype, operands, stack) for size, stride, dtype in looks)

    meta_args, meta_kwargs = replace_tensors(args, kwargs, lambda t: tensors.on_meta(t) if t.is_cuda else t)
    outputs = [torch.empty_strided(size, stride, dtype=dtype, device="meta") for size, stride, dtype in looks]
    steps = temporaries.steps(func, meta_args, meta_kwargs, outputs, dry.gpu)
    dry.take_steps(steps or [temporaries.OUT], make, stack, Outcome.named(func, operands))
    return made


def _bring(dry, func, args, kwargs, result, assumed, operands):
    hosts = list(result) if isinstance(result, (list, tuple)) else [result]
    made = bring_all(dry, func, args, kwargs, [(h.size(), h.stride(), h.dtype) for h in hosts], operands)
    for tensor, host in zip(made, hosts):
        if dry.values.worth_knowing(host.numel(), host.dtype):
            dry.values.know(tensor, host, assumed)
    return tuple(made) if isinstance(result, (list, tuple)) else made[0]


def _bring_unknown(dry, func, args, kwargs, looks, operands):
    made = bring_all(
        dry,
        func,
        args,
        kwargs,
        [(torch.Size(size), tensors.contiguous_stride(size), dtype) for size, dtype in looks],
        operands,
    )
    for tensor in made:
        dry.values.assume(tensor)
    return made[0] if len(made) == 1 else tuple(made)


def _most(dry, x) -> int:
    """How many of its elements can be nonzero."""
    known = chosen.most(dry.memory, x)
    return x.numel() if known is None else known


def _share(dry, mask) -> int | None:
    return shares.expected(dry.memory, mask) if mask.is_cuda and dry.values.is_assumed(mask) else None


@handles(aten.nonzero.default)
def nonzero(dry, func, args, kwargs):
    x = args[0]
    if (count := _share(dry, x)) is not None:
        dry.notes.add("value", shares.told("nonzero() of unknown values", count, x.numel()))
        return _bring_unknown(dry, func, args, kwargs, [((count, x.dim()), torch.int64)], [x])
    return _dynamic(
        dry,
        func,
        args,
        kwargs,
        lambda: [((_most(dry, x), x.dim()), torch.int64)],
        f"nonzero() of {x.numel()} unknown values: {_all(_most(dry, x), x)} counted as nonzero, the most there can be",
        counts_all=True,
    )


@handles(aten.masked_select.default)
def masked_select(dry, func, args, kwargs):
    x, mask = args[0], args[1]
    size = torch.broadcast_shapes(x.size(), mask.size()).numel()
    if x.size() == mask.size() and (count := _share(dry, mask)) is not None:
        dry.notes.add("value", shares.told("masked_select() with an unknown mask", count, size))
        return _bring_unknown(dry, func, args, kwargs, [((count,), x.dtype)], [x, mask])
    return _dynamic(
        dry,
        func,
        args,
        kwargs,
        lambda: [((_most(dry, mask) if x.size() == mask.size() else size,), x.dtype)],
        f"masked_select() with an unknown mask: all {size} elements were taken, the most there can be",
        counts_all=True,
    )


def _all(count: int, x) -> str:
    return "all were" if count == x.numel() else f"{count} were"


def _places(dry, mask) -> list:
    """The indices of what the mask chooses at most, as nonzero() makes them."""
    with dry:
        made = [torch.empty(_most(dry, mask), dtype=torch.int64, device=mask.device) for _ in range(mask.dim())]
    for column in made:
        loose_sizes.mark(dry.memory, column)
    return made


@handles(aten.index.Tensor)
def index(dry, func, args, kwargs):
    x, indices = args[0], args[1]
    if not any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in indices):
        return NotImplemented
    known = []
    for i in indices:
        if i is not None and i.dtype in (torch.bool, torch.uint8):
            host = dry.values.view(i) if i.is_cuda else i
            if (count := _share(dry, i)) is not None:
                dry.notes.add("value", shares.told("indexing with an unknown mask", count, i.numel()))
                with dry:
                    known += [torch.empty(count, dtype=torch.int64, device=i.device) for _ in range(i.dim())]
            elif host is None or i.is_cuda and dry.values.is_assumed(i):
                dry.notes.at_most(
                    f"indexing with an unknown mask of {i.numel()} elements: {_all(_most(dry, i), i)} taken, the most there can be"
                )
                known += _places(dry, i)
            else:
                with dry:
                    known += [column.to(x.device) for column in host.nonzero().unbind(1)]
        else:
            known.append(i)
    return dry.run(func, (x, known), kwargs)


@handles(*overloads("_unique2", "_unique", "unique_consecutive", "unique_dim"))
def unique(dry, func, args, kwargs):
    x = args[0]
    count = x.numel()
    return _dynamic(
        dry,
        func,
        args,
        kwargs,
        lambda: [((count,), x.dtype), (tuple(x.size()), torch.int64), ((count,), torch.int64)][
            : len(func._schema.returns)
        ],
        f"unique() of {count} unknown values: all were counted as different, the most there can be",
    )


@handles(aten.repeat_interleave.Tensor)
def repeat_interleave(dry, func, args, kwargs):
    size = kwargs.get("output_size")
    return _dynamic(
        dry,
        func,
        args,
        kwargs,
        lambda: [((size if size is not None else args[0].numel(),), torch.int64)],
        "repeat_interleave() with unknown counts: each was taken as 1",
        is_loose=False,
    )


@handles(aten.bincount.default)
def bincount(dry, func, args, kwargs):
    least = kwargs.get("minlength", args[2] if len(args) > 2 else 0)
    return _dynamic(
        dry,
        func,
        args,
        kwargs,
        lambda: [((max(least, 1),), torch.int64)],
        "bincount() of unknown values: one bin, or minlength",
        is_loose=False,
    )
