"""Results whose size depends on values: computed where the values are known, else the largest that can come out."""

from __future__ import annotations

import torch

from ....common.stacks import user_line
from ...source import decisions
from ..kernels import temporaries
from ..operations.operations import handles, overloads
from ..operations.outcome import Outcome, flatten, replace_tensors
from ..tensors import loose_sizes, tensors
from ..values import chosen, ranges, shares

aten = torch.ops.aten


def _dynamic(
    dry, func, args, kwargs, size, text: str = "", rows: int | None = None, firm: float = 0.0, counts_all: bool = False
):
    """Runs on the values where they are known; else a result of this size, of which rows are the most there can be, and the firm share is there in any case.
    counts_all: stand-ins for values do not say how many are chosen."""
    operands = flatten(args, kwargs)
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in operands]
    assumed = any(t.is_cuda and dry.values.is_assumed(t) for t in operands)
    if all(h is not None for h in hosts) and not (assumed and counts_all):
        order = iter(hosts)
        host_args, host_kwargs = replace_tensors(args, kwargs, lambda _t: next(order))
        result = func(*host_args, **host_kwargs)
        return _bring(dry, func, args, kwargs, result, assumed, operands)
    looks = size()
    if text:
        dry.notes.at_most(text, group=text.partition(":")[0].partition(")")[0])
        rows = looks[0][0][0] if rows is None else rows
    if rows is None:
        return _bring_unknown(dry, func, args, kwargs, looks, operands)
    with loose_sizes.made_with(dry.memory, rows, firm):
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


def _share(dry, what: str, mask):
    """How many an unknown mask chooses where the way it was made tells; None: it does not. Noted."""
    found = shares.expected(dry.memory, mask) if mask.is_cuda and dry.values.is_assumed(mask) else None
    if found is not None and found.is_open:
        dry.notes.add("value", shares.told(what, found, mask.numel()), group=what)
    return found


def _shared(dry, found, make):
    """make(count), whose results have so many rows, or none, or all."""
    if not found.is_open:
        return make(found.count)
    with loose_sizes.made_with(dry.memory, found.count, *found.ends):
        return make(found.count)


@handles(aten.nonzero.default)
def nonzero(dry, func, args, kwargs):
    x = args[0]
    if (found := _share(dry, "nonzero() of unknown values", x)) is not None:
        return _shared(
            dry,
            found,
            lambda count: _bring_unknown(dry, func, args, kwargs, [((count, x.dim()), torch.int64)], [x]),
        )
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
    if x.size() == mask.size() and (found := _share(dry, "masked_select() with an unknown mask", mask)) is not None:
        return _shared(
            dry, found, lambda count: _bring_unknown(dry, func, args, kwargs, [((count,), x.dtype)], [x, mask])
        )
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


def _places(dry, mask, count: int, firm: float = 0.0, most: float = 1.0) -> list:
    """So many indices of what the mask chooses, as nonzero() makes them, and what of them is sure, and may be."""
    with dry:
        made = [torch.empty(count, dtype=torch.int64, device=mask.device) for _ in range(mask.dim())]
    for column in made:
        loose_sizes.mark(dry.memory, column, firm=firm, most=most)
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
            if (found := _share(dry, "indexing with an unknown mask", i)) is not None:
                known += _places(dry, i, found.count, *found.ends)
            elif host is None or i.is_cuda and dry.values.is_assumed(i):
                dry.notes.at_most(
                    f"indexing with an unknown mask of {i.numel()} elements: {_all(_most(dry, i), i)} taken, the most there can be",
                    group="indexing with an unknown mask",
                )
                known += _places(dry, i, _most(dry, i))
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


def _unbounded(dry, name: str, taken: str) -> None:
    """Nothing tells how large the result can be."""
    line = user_line()
    dry.notes.add(
        "value",
        f"{name} of values that a dry run does not compute: {taken} counted, and it may be more (--real computes it)",
        line,
        group=name,
        verdict=f"with the size of {name} from values that are not computed ({decisions.at(line)})",
    )


@handles(aten.repeat_interleave.Tensor)
def repeat_interleave(dry, func, args, kwargs):
    counts, size = args[0], kwargs.get("output_size", args[1] if len(args) > 1 else None)
    if size is not None:
        return _dynamic(dry, func, args, kwargs, lambda: [((size,), counts.dtype)], counts_all=True)
    most = chosen.most_in_all(dry.memory, counts)
    if most is not None:
        text = (
            f"repeat_interleave() with {counts.numel()} unknown counts: {most} rows were taken, the most there can be"
        )
        return _dynamic(dry, func, args, kwargs, lambda: [((most,), counts.dtype)], text, rows=most, counts_all=True)

    def once_each():
        _unbounded(dry, "repeat_interleave()", "each once was")
        return [((counts.numel(),), counts.dtype)]

    return _dynamic(dry, func, args, kwargs, once_each, counts_all=True)


@handles(aten.bincount.default)
def bincount(dry, func, args, kwargs):
    counts = _bincount(dry, func, args, kwargs)
    record = dry.memory.find(counts)
    if record is not None and ranges.is_whole(counts):
        record.total = args[0].numel()
    return counts


def _bincount(dry, func, args, kwargs):
    arguments = dict(zip(("self", "weights", "minlength"), args)) | kwargs
    x, weights, asked = args[0], arguments.get("weights"), arguments.get("minlength", 0)
    dtype = torch.int64 if weights is None else torch.float32 if weights.dtype is torch.float32 else torch.float64
    known = ranges.bound(dry.memory, x)
    if known is not None and known[0] < asked or not x.numel():
        return _dynamic(dry, func, args, kwargs, lambda: [((asked,), dtype)], counts_all=True)
    if known is not None:
        bins = known[0] + 1
        text = f"bincount() of unknown values: {bins} bins were taken, the most there can be"
        return _dynamic(
            dry, func, args, kwargs, lambda: [((bins,), dtype)], text, rows=bins, firm=asked / bins, counts_all=True
        )

    def as_asked():
        if asked > 1:  # the program says how many classes there are
            text = f"bincount() of unknown values: minlength={asked} bins were counted"
            dry.notes.add("value", text, group="bincount()")
        else:
            _unbounded(dry, "bincount()", "one bin was")
        return [((max(asked, 1),), dtype)]

    return _dynamic(dry, func, args, kwargs, as_asked, counts_all=True)
