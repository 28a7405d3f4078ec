"""Copies between host and GPU."""

from __future__ import annotations

import torch

from ...source import decisions
from ..kernels.copies import transfer_blocks
from ..operations.operations import handles
from ..tensors import tensors
from ..tensors.naming import dtype_name
from ..values import chosen, ranges, shares
from . import nested_tensors, sparse_tensors

aten = torch.ops.aten
Tensor = torch.Tensor


@handles(aten._to_copy.default)
def to_copy(dry, func, args, kwargs):
    source = args[0]
    target = kwargs.get("device")
    target = source.device if target is None else target
    if target.type == "cuda" and source.is_nested:
        return nested_tensors.move(dry, source, target, kwargs.get("dtype"))
    if target.type == "cuda" and source.layout is not torch.strided:
        return sparse_tensors.move(dry, source, target, kwargs.get("dtype"))
    if target.type == "cuda":
        result = dry.run(func, args, kwargs, values=False)
        if source.is_cuda:
            chosen.copied(dry.memory, result, source)
            shares.follow(dry.memory, func, args, [source], [result])
            if ranges.is_whole(result) and ranges.is_whole(source):
                ranges.note(dry.memory, result, ranges.bound(dry.memory, source))
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
        else:
            if not source.is_cuda and not assumed:
                ranges.note_host(dry.memory, result, source)
            if result.numel() <= 1024:
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
            if ranges.is_whole(source):
                dry.notes.may_decide(decisions.of_copy(), ranges.is_most(dry.memory, source), dry.looks())
                if not ranges.is_most(dry.memory, source):
                    dry.loop_ends.read()
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
        if record is not None:
            record.unset = False
        chosen.copied(dry.memory, target, source)
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
        if ranges.is_whole(target):
            known = (
                ranges.bound(dry.memory, source)
                if source.is_cuda
                else ranges.of_host(source)
                if host is not None
                else None
            )
            ranges.note(dry.memory, target, known if ranges.is_whole(source) else None)
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
