"""Operations that need more than their result's shape: reads of values, choices of kernels, buffers that several results share."""

from __future__ import annotations

import itertools

import torch

from ...session.notes import TRUTH
from ...session.unplannable import Unplannable
from ...source import decisions
from ..kernels import temporaries
from ..operations.operations import handles, overloads
from ..operations.outcome import Outcome
from ..tensors import storages, tensors
from ..tensors.naming import op_name
from ..values import ranges
from .value_sized_results import allocate, bring_all

aten = torch.ops.aten
Tensor = torch.Tensor


# --- reading


@handles(aten._local_scalar_dense.default)
def read_scalar(dry, func, args, kwargs):
    host, assumed = dry.values.read(args[0])
    value = host.item()
    if assumed:
        if isinstance(value, bool) and (known := decisions.goes_on()) is not None:
            value = known
        kind, group = ("truth value", TRUTH) if isinstance(value, bool) else ("number", "read")
        dry.notes.stand_in(
            f"a {kind} read from the GPU is a stand-in (first {value!r}): a dry run does not compute it", group=group
        )
        if type(value) is int and value > 1:
            dry.progress.read_sizes.add(value)
        is_most = ranges.is_most(dry.memory, args[0])
        dry.notes.may_decide(decisions.of_read(value), is_most, dry.looks())
        if not is_most:
            dry.loop_ends.read()
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


@handles(*overloads("_use_cudnn_ctc_loss"))
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


@handles(*overloads("_use_miopen_ctc_loss"))
def use_miopen_ctc_loss(dry, func, args, kwargs):
    return False


@handles(*overloads("_nested_tensor_from_mask_left_aligned"))
def may_be_nested(dry, func, args, kwargs):
    dry.notes.add(
        "mode", "nn.TransformerEncoder ran on padded tensors: nested tensors are not planned, and would need less"
    )
    return False


@handles(
    *overloads(
        "quantize_per_tensor",
        "quantize_per_tensor_dynamic",
        "quantize_per_channel",
        "_empty_affine_quantized",
        "_empty_per_channel_affine_quantized",
        "_make_per_tensor_quantized_tensor",
        "_make_per_channel_quantized_tensor",
    )
)
def quantized(dry, func, args, kwargs):
    raise Unplannable(
        f"tensors of PyTorch's quantized types (qint8 and its kin) on the GPU are not known to a dry run ({op_name(func)})"
    )


@handles(aten._has_compatible_shallow_copy_type.default)
def compatible(dry, func, args, kwargs):
    return True


# --- GradScaler: gradients are taken as finite


@handles(*overloads("_amp_foreach_non_finite_check_and_unscale_"))
def unscale(dry, func, args, kwargs):
    return None


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


@handles(*overloads("_cudnn_rnn_backward"))
def rnn_backward(dry, func, args, kwargs):
    """Gradients of the input and the states, and of all weights in one flat buffer."""
    x, weights, hx, cx, mask = args[0], args[1], args[4], args[5], args[-1]
    wanted = [t if m else None for t, m in zip((x, hx, cx), mask)]
    looks = [(t.size(), tensors.contiguous_stride(t.size()), t.dtype) for t in wanted if t is not None]
    if mask[3]:
        looks.append((torch.Size((sum(w.numel() for w in weights),)), (1,), weights[0].dtype))
    made = iter(bring_all(dry, func, args, kwargs, looks, [x, hx]))
    dx, dhx, dcx = (None if t is None else next(made) for t in wanted)
    gradients, offset = [], 0
    buffer = next(made) if mask[3] else None
    for weight in weights if mask[3] else ():
        gradients.append(tensors.alias(buffer, weight.size(), tensors.contiguous_stride(weight.size()), offset))
        offset += weight.numel()
    return dx, dhx, dcx, gradients


@handles(*overloads("_pack_padded_sequence"))
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
        lambda: made.append(allocate(dry, func, size, tensors.contiguous_stride(size), x.dtype, [x], stack)),
        stack,
        outcome,
    )
    return made[0], torch.tensor(batch_sizes, dtype=torch.int64)


@handles(*overloads("_pack_padded_sequence_backward"))
def pack_padded_sequence_backward(dry, func, args, kwargs):
    gradient, size, batch_sizes, batch_first = args
    size = list(size)
    length, batch = (size[1], size[0]) if batch_first else (size[0], size[1])
    whole = torch.Size((length, batch, *size[2:]))
    result = allocate(dry, func, whole, tensors.contiguous_stride(whole), gradient.dtype, [gradient])
    if not batch_first:
        return result
    stride = list(result.stride())
    stride[0], stride[1] = stride[1], stride[0]
    return tensors.alias(result, torch.Size(size), tuple(stride), 0)


@handles(aten._embedding_bag_backward.default)
def embedding_bag_backward(dry, func, args, kwargs):
    """With sparse=True: PyTorch's own code, which makes indices and values one by one."""
    grad, indices, offsets, bag_of_each, bag_sizes, _, rows, by_frequency, mode, sparse, weights, *padding = args
    if not sparse:
        return NotImplemented
    with dry:
        return aten._embedding_bag_sparse_backward(
            grad, indices, offsets, bag_of_each, bag_sizes, rows, by_frequency, mode, weights, *padding
        )
