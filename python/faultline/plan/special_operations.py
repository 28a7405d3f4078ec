"""Operations that need more than their result's shape: copies between host and GPU, reads of values, results whose size depends on values."""

from __future__ import annotations

import functools
import itertools

import torch

from . import shares, storages, temporaries, tensors
from .kernels.copies import transfer_blocks
from .naming import dtype_name
from .notes import TRUTH
from .older_torch import use_count
from .outcome import Outcome, flatten, replace_tensors

aten = torch.ops.aten
Tensor = torch.Tensor
CPU = torch.device("cpu")
HANDLERS: dict = {}


def handles(*functions):
    def keep(handler):
        for function in functions:
            HANDLERS[function] = handler
        return handler

    return keep


def _overloads(*names):
    found = []
    for name in names:
        packet = getattr(aten, name, None)
        if packet is not None:
            found += [getattr(packet, overload) for overload in packet.overloads()]
    return found


# The host's tensors may stand beside the GPU's in these: copies, and indices and sizes that PyTorch moves by itself.
MIXES_DEVICES = set(
    _overloads(
        "_to_copy",
        "copy_",
        "copy",
        "index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_pin_memory",
        "is_pinned",
        "set_",
        "lift_fresh",
        "_has_compatible_shallow_copy_type",
        "_foreach_copy_",
        "_pack_padded_sequence",
        "_pack_padded_sequence_backward",
        "split_with_sizes",
        "_use_cudnn_ctc_loss",
        "_ctc_loss_backward",
        "_cudnn_rnn",
        "_cudnn_rnn_backward",
        "_cudnn_init_dropout_state",
        "nested_tensor",
        "ctc_loss",
        "_ctc_loss",
        "_cudnn_ctc_loss",
    )
)


# Operands (by position) that must have one type.
SAME_TYPE = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (0, 1, 2),
    aten.baddbmm.default: (0, 1, 2),
    aten.addmv.default: (0, 1, 2),
    aten.mv.default: (0, 1),
    aten.dot.default: (0, 1),
    aten.convolution.default: (0, 1, 2),
}


def type_problem(func, operands) -> str:
    """The words of PyTorch 2.11 on a GPU."""
    names = [str(t.dtype)[6:] for t in operands]
    words = {
        "float32": "float",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "float64": "double",
        "int64": "long",
        "int32": "int",
    }
    if func is aten.convolution.default:
        kinds = {
            "float32": "FloatTensor",
            "float16": "HalfTensor",
            "bfloat16": "BFloat16Tensor",
            "float64": "DoubleTensor",
        }
        which = "weight" if operands[0].dtype is not operands[1].dtype else "bias"
        other = operands[1] if which == "weight" else operands[2]
        return f"Input type (torch.cuda.{kinds.get(names[0], names[0])}) and {which} type (torch.cuda.{kinds.get(str(other.dtype)[6:], str(other.dtype)[6:])}) should be the same"
    first, second = (
        (operands[1], operands[2])
        if len(operands) == 3 and operands[1].dtype is not operands[2].dtype
        else (operands[0], operands[-1])
    )
    return f"expected mat1 and mat2 to have the same dtype, but got: {words.get(str(first.dtype)[6:], str(first.dtype)[6:])} != {words.get(str(second.dtype)[6:], str(second.dtype)[6:])}"


def refusal(func, args, kwargs, problem: Exception) -> Exception:
    """An operation that a meta kernel refused, in the words of a real kernel: the host's is asked with operands of the same layout. It refuses before it computes; where the operands are large, in case it does not, it is not asked."""
    if sum(t.numel() for t in flatten(args, kwargs)) > 1 << 22:
        return problem
    host_args, host_kwargs = replace_tensors(
        args, kwargs, lambda t: torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
    )
    if "device" in host_kwargs:
        host_kwargs["device"] = CPU
    try:
        func(*host_args, **host_kwargs)
    except (RuntimeError, IndexError, ValueError) as told:
        if not isinstance(told, NotImplementedError) and "single memory location" not in str(told):
            return type(told)(str(told))
    return problem


# These may show more of a storage than the tensor they are given does.
REACHES_BEYOND = set(_overloads("as_strided", "as_strided_", "as_strided_copy", "resize_", "set_"))


@functools.lru_cache(maxsize=None)
def _write_positions(func) -> tuple[frozenset, frozenset]:
    positions, names = set(), set()
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            positions.add(position)
            names.add(argument.name)
    return frozenset(positions), frozenset(names)


def written(func, args, kwargs) -> list[int]:
    """Which operands, in the order of mode.flatten, the operation writes into."""
    positions, names = _write_positions(func)
    if not positions:
        return []
    found: list[int] = []
    index = 0
    for write, value in [(p in positions, a) for p, a in enumerate(args)] + [
        (k in names, v) for k, v in kwargs.items()
    ]:
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, Tensor):
                if write:
                    found.append(index)
                index += 1
    return found


_OVERWRITES = set(
    _overloads(
        "fill_",
        "zero_",
        "copy_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "cauchy_",
    )
)


def only_written(func) -> tuple[int, ...]:
    """Operands whose old values do not matter."""
    return (0,) if func in _OVERWRITES else ()


# --- reading


@handles(aten._local_scalar_dense.default)
def read_scalar(dry, func, args, kwargs):
    host, assumed = dry.values.read(args[0])
    value = host.item()
    if assumed:
        kind, group = ("truth value", TRUTH) if isinstance(value, bool) else ("number", "read")
        dry.notes.stand_in(
            f"a {kind} read from the GPU is a stand-in (first {value!r}): a dry run does not compute it", group=group
        )
    return value


@handles(aten.equal.default)
def read_equal(dry, func, args, kwargs):
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in args[:2]]
    if None in [h if h is None else 0 for h in hosts]:
        dry.notes.stand_in("torch.equal of tensors whose values are not known was taken as False")
        return False
    return torch.equal(*hosts)


@handles(aten.allclose.default)
def read_allclose(dry, func, args, kwargs):
    """Is it as it should be? Unknown values are taken as in order."""
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in args[:2]]
    if any(h is None for h in hosts) or any(t.is_cuda and dry.values.is_assumed(t) for t in args[:2]):
        dry.notes.stand_in("torch.allclose of tensors whose values are not known was taken as True")
        return True
    return torch.allclose(*hosts, *args[2:], **kwargs)


@handles(*_overloads("_use_cudnn_ctc_loss"))
def use_cudnn_ctc_loss(dry, func, args, kwargs):
    """cuDNN's CTC takes concatenated targets on the host, as 32-bit numbers, and the blank first."""
    log_probs, targets, input_lengths, _, blank = args[:5]
    fits = (
        not targets.is_cuda
        and targets.dim() == 1
        and targets.dtype is torch.int32
        and blank == 0
        and log_probs.dtype is torch.float32
    )
    return fits and all(int(length) == log_probs.size(0) for length in input_lengths)


@handles(*_overloads("_use_miopen_ctc_loss"))
def use_miopen_ctc_loss(dry, func, args, kwargs):
    return False


@handles(*_overloads("_nested_tensor_from_mask_left_aligned"))
def may_be_nested(dry, func, args, kwargs):
    dry.notes.add(
        "mode", "nn.TransformerEncoder ran on padded tensors: nested tensors are not planned, and would need less"
    )
    return False


@handles(aten._has_compatible_shallow_copy_type.default)
def compatible(dry, func, args, kwargs):
    return True


# --- between host and GPU


@handles(aten._to_copy.default)
def to_copy(dry, func, args, kwargs):
    source = args[0]
    target = kwargs.get("device")
    target = source.device if target is None else target
    if target.type == "cuda":
        result = dry.run(func, args, kwargs, values=False)
        if source.is_cuda:
            shares.follow(dry.memory, func, args, [source], [result])
            host, assumed = dry.values.view(source), dry.values.is_assumed(source)
        else:
            if dry.values.worth_knowing(source.numel(), result.dtype):
                dry.host.fill(source.untyped_storage())
            host, assumed = source, dry.host.is_unfilled(source)
        if (
            host is not None
            and not (assumed and not source.is_cuda)
            and dry.values.worth_knowing(source.numel(), result.dtype)
        ):
            dry.values.know(result, host, assumed)
        elif result.numel() <= 1024:
            dry.values.assume(result)
        return result
    if target.type == "cpu":
        dtype = kwargs.get("dtype") or source.dtype
        return _to_host(dry, source, dtype, kwargs.get("memory_format"), bool(kwargs.get("non_blocking")))
    return (
        func(*args, **{**kwargs, "device": target})
        if not source.is_cuda
        else torch.empty_strided(
            source.size(), source.stride(), dtype=kwargs.get("dtype") or source.dtype, device=target
        )
    )


def _blocks_of_copy(dry, source, target, non_blocking: bool) -> None:
    """A copy to the host may convert or rearrange on the GPU first."""
    stack = dry.memory.stacks.here()
    for size_bytes in transfer_blocks(source, target, non_blocking):
        number = dry.memory.device.tensor(
            tuple(source.size()), dtype_name(source.dtype), op="aten::_to_copy", name=dry.progress.module
        )
        allocation, _ = dry.memory.take(size_bytes, stack, number)
        dry.memory.device.free(allocation, stack)


def _to_host(dry, source, dtype, memory_format=None, non_blocking=False) -> Tensor:
    keeps_layout = memory_format in (None, torch.preserve_format) and tensors.is_dense(source)
    host = dry.values.view(source)
    if host is None and source.numel() > 1024:
        result = dry.host.unfilled(source.size(), source.stride() if keeps_layout else None, dtype)
        dry.notes.stand_in(
            f"a tensor of {source.numel()} elements copied to the host has no values in a dry run: zeros"
        )
    else:
        host, assumed = dry.values.read(source)
        if assumed and source.numel():
            dry.notes.stand_in("values copied to the host are stand-ins: a dry run does not compute them")
        result = host.to(dtype)
        if memory_format not in (None, torch.preserve_format):
            result = result.contiguous(memory_format=memory_format)
    _blocks_of_copy(dry, source, result, non_blocking)
    return result


@handles(aten.copy_.default)
def copy_into(dry, func, args, kwargs):
    target, source = args[0], args[1]
    if target.is_cuda:
        dry.outcome(func, args, kwargs, [target, source])  # shapes that do not fit are refused here
        if not source.is_cuda and dry.values.worth_knowing(target.numel(), target.dtype):
            dry.host.fill(source.untyped_storage())
        host = dry.values.view(source) if source.is_cuda else (None if dry.host.is_unfilled(source) else source)
        record = dry.memory.find(target)
        if (
            host is not None
            and record is not None
            and (record.shadow is not None or target.untyped_storage().nbytes() <= 1 << 20)
            and dry.values.worth_knowing(target.numel(), target.dtype)
        ):
            if record.shadow is None:
                record.shadow = torch.zeros(target.untyped_storage().nbytes(), dtype=torch.uint8).untyped_storage()
            dry.values.view(target, record).copy_(host)
            record.assumed = (
                record.assumed
                and target.numel() * target.dtype.itemsize < record.size_bytes
                or (source.is_cuda and dry.values.is_assumed(source))
            )
        elif record is not None and record.shadow is not None:
            dry.values.assume(target)
        return target
    if not source.is_cuda:
        return NotImplemented
    _blocks_of_copy(dry, source, target, bool(args[2]) if len(args) > 2 else bool(kwargs.get("non_blocking")))
    dry.host.fill(target.untyped_storage())
    host, assumed = dry.values.read(source)
    if assumed:
        dry.notes.stand_in("values copied to the host are stand-ins: a dry run does not compute them")
    target.copy_(host)
    return target


# --- GradScaler: gradients are taken as finite


@handles(*_overloads("_amp_foreach_non_finite_check_and_unscale_"))
def unscale(dry, func, args, kwargs):
    return None


# --- results whose size depends on values


def _dynamic(dry, func, args, kwargs, worst_size, text: str):
    """Runs on the values where they are known; else the largest result that can come out."""
    operands = flatten(args, kwargs)
    hosts = [t if not t.is_cuda else dry.values.view(t) for t in operands]
    if all(h is not None for h in hosts):
        order = iter(hosts)
        host_args, host_kwargs = replace_tensors(args, kwargs, lambda _t: next(order))
        result = func(*host_args, **host_kwargs)
        assumed = any(t.is_cuda and dry.values.is_assumed(t) for t in operands)
        return _bring(dry, func, args, kwargs, result, assumed, operands)
    dry.notes.add("value", text)
    return _bring_unknown(dry, func, args, kwargs, worst_size(), operands)


def _allocate(dry, func, size, stride, dtype, operands, stack=-1):
    tensor = tensors.make(size, stride, dtype)
    dry._born(tensor, Outcome.named(func, operands), stack)
    return tensor


def _bring_all(dry, func, args, kwargs, looks, operands) -> list:
    """Tensors of these looks, (size, stride, dtype), with what the kernel takes beside them."""
    made: list = []
    stack = dry.memory.stacks.here()

    def make():
        made.extend(_allocate(dry, func, size, stride, dtype, operands, stack) for size, stride, dtype in looks)

    meta_args, meta_kwargs = replace_tensors(args, kwargs, lambda t: tensors.on_meta(t) if t.is_cuda else t)
    outputs = [torch.empty_strided(size, stride, dtype=dtype, device="meta") for size, stride, dtype in looks]
    steps = temporaries.steps(func, meta_args, meta_kwargs, outputs, dry.gpu)
    dry.take_steps(steps or [temporaries.OUT], make, stack, Outcome.named(func, operands))
    return made


def _bring(dry, func, args, kwargs, result, assumed, operands):
    hosts = list(result) if isinstance(result, (list, tuple)) else [result]
    made = _bring_all(dry, func, args, kwargs, [(h.size(), h.stride(), h.dtype) for h in hosts], operands)
    for tensor, host in zip(made, hosts):
        if dry.values.worth_knowing(host.numel(), host.dtype):
            dry.values.know(tensor, host, assumed)
    return tuple(made) if isinstance(result, (list, tuple)) else made[0]


def _bring_unknown(dry, func, args, kwargs, looks, operands):
    made = _bring_all(
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
        lambda: [((x.numel(), x.dim()), torch.int64)],
        f"nonzero() of {x.numel()} unknown values: all were counted as nonzero, the most there can be",
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
        lambda: [((size,), x.dtype)],
        f"masked_select() with an unknown mask: all {size} elements were taken, the most there can be",
    )


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
            elif host is None:
                dry.notes.add(
                    "value",
                    f"indexing with an unknown mask of {i.numel()} elements: all were taken, the most there can be",
                )
                with dry:
                    known += [torch.empty(i.numel(), dtype=torch.int64, device=i.device) for _ in range(i.dim())]
            else:
                with dry:
                    known += [column.to(x.device) for column in host.nonzero().unbind(1)]
        else:
            known.append(i)
    return dry.run(func, (x, known), kwargs)


@handles(*_overloads("_unique2", "_unique", "unique_consecutive", "unique_dim"))
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
    )


@handles(aten.any.default, aten.all.default)
def any_all(dry, func, args, kwargs):
    """Is anything wrong? Unknown values are taken as in order: any() is false, all() is true. What a comparison of stand-ins gives is kept."""
    result = dry.run(func, args, kwargs)
    record = dry.memory.find(args[0])
    if dry.values.view(args[0]) is None and not (record is not None and isinstance(record.stand_in, bool)):
        dry.values.assume(result, func is aten.all.default)
    return result


@handles(aten.set_.source_Tensor, aten.set_.source_Storage, aten.set_.source_Storage_storage_offset)
def set_(dry, func, args, kwargs):
    target, source = args[0], args[1]
    if source.device.type != "cuda":
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {target.device} and {source.device}! (set_)"
        )
    if isinstance(source, Tensor):
        tensors.replace(target, source)
        return target
    offset, size, stride = (
        (*args[2:], None)[:3] if len(args) > 2 else (0, (source.nbytes() // target.dtype.itemsize,), None)
    )
    return storages.put(target, source, offset, size, stride or tensors.contiguous_stride(size))


@handles(*_overloads("_cudnn_rnn_backward"))
def rnn_backward(dry, func, args, kwargs):
    """Gradients of the input and the states, and of all weights in one flat buffer."""
    x, weights, hx, cx, mask = args[0], args[1], args[4], args[5], args[-1]
    wanted = [t if m else None for t, m in zip((x, hx, cx), mask)]
    looks = [(t.size(), tensors.contiguous_stride(t.size()), t.dtype) for t in wanted if t is not None]
    if mask[3]:
        looks.append((torch.Size((sum(w.numel() for w in weights),)), (1,), weights[0].dtype))
    made = iter(_bring_all(dry, func, args, kwargs, looks, [x, hx]))
    dx, dhx, dcx = (None if t is None else next(made) for t in wanted)
    gradients, offset = [], 0
    buffer = next(made) if mask[3] else None
    for weight in weights if mask[3] else ():
        gradients.append(tensors.alias(buffer, weight.size(), tensors.contiguous_stride(weight.size()), offset))
        offset += weight.numel()
    return dx, dhx, dcx, gradients


# --- gradients that meet


class Accumulation:
    """Where two gradients of one tensor meet, the autograd engine adds the second into the first if nobody else holds it. Under a dispatch mode it never
    does, so the sum is given the storage that it would have had. What "nobody else" looks like from here is learnt from a small example."""

    def __init__(self):
        self._alone: tuple[int, int] | None = None
        self._learning = False

    @staticmethod
    def _holders(tensor) -> tuple[int, int]:
        return use_count(tensor), torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)

    def learn(self, memory) -> None:
        """x reaches the end by two ways, so its gradients meet, each held by the engine alone."""
        self._learning = memory.unseen = True
        with torch.enable_grad():
            x = torch.ones(2, device="cuda", requires_grad=True)
            y = x * 1
            (y * 2 + y * 3).sum().backward()
        self._learning = memory.unseen = False

    def add(self, dry, func, args, kwargs):
        if not dry.progress.in_backward or len(args) != 2 or kwargs or torch.is_grad_enabled():
            return NotImplemented
        first, second = args
        if not isinstance(second, Tensor) or first.size() != second.size() or first.dtype is not second.dtype:
            return NotImplemented
        holders = self._holders(first)
        if self._learning:
            self._alone = holders
            return NotImplemented
        if holders != self._alone or not tensors.is_dense(first):
            return NotImplemented
        if dry.values.everything:
            dry.values.view(first).add_(dry.values.view(second))
        else:
            dry.values.forget(first)
        return tensors.alias(first, first.size(), first.stride(), first.storage_offset())


accumulation = Accumulation()
HANDLERS[aten.add.Tensor] = accumulation.add


@handles(*_overloads("_pack_padded_sequence"))
def pack_padded_sequence(dry, func, args, kwargs):
    """The lengths are on the host, so the packed size is known. Time steps of one batch size are copied together, and the copies then joined."""
    x, lengths = args[0], args[1]
    batch_sizes = [int((lengths > t).sum()) for t in range(int(lengths[0]))] if lengths.numel() else []
    row_bytes = x.size()[2:].numel() * x.dtype.itemsize
    copies = [sum(group) * row_bytes for _, group in itertools.groupby(batch_sizes)]
    size = torch.Size((sum(batch_sizes), *x.size()[2:]))
    stack, made = dry.memory.stacks.here(), []
    outcome = Outcome.named(func, [x])
    dry.take_steps(
        [*copies, temporaries.OUT],
        lambda: made.append(_allocate(dry, func, size, tensors.contiguous_stride(size), x.dtype, [x], stack)),
        stack,
        outcome,
    )
    return made[0], torch.tensor(batch_sizes, dtype=torch.int64)


@handles(*_overloads("_pack_padded_sequence_backward"))
def pack_padded_sequence_backward(dry, func, args, kwargs):
    gradient, size, batch_sizes, batch_first = args
    size = list(size)
    length, batch = (size[1], size[0]) if batch_first else (size[0], size[1])
    whole = torch.Size((length, batch, *size[2:]))
    result = _allocate(dry, func, whole, tensors.contiguous_stride(whole), gradient.dtype, [gradient])
    if not batch_first:
        return result
    stride = list(result.stride())
    stride[0], stride[1] = stride[1], stride[0]
    return tensors.alias(result, torch.Size(size), tuple(stride), 0)
