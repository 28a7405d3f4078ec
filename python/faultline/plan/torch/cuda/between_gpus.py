"""Copies from one GPU to several and back (torch.nn.DataParallel, torch.cuda.comm), as PyTorch's own functions for them allocate."""

from __future__ import annotations

import torch

from ..tensors import places


def _parts(length: int, count: int, sizes) -> list[int]:
    """How a dimension is split: as told, or in equal parts of which the last may be smaller or missing (torch.chunk)."""
    if sizes is not None:
        return list(sizes)
    each = -(-length // count)
    return [min(each, length - begin) for begin in range(0, length, each)] if length else [0]


def scatter(tensor, devices, sizes=None, dim=0, streams=None):
    parts = tensor.split(_parts(tensor.size(dim), len(devices), sizes), dim)
    return tuple(
        part.to(torch.device("cuda", places.check(index)), non_blocking=True) for part, index in zip(parts, devices)
    )


def gather(tensors, dim=0, destination=None):
    place = (
        torch.device("cuda", places.current() if destination in (None, -1) and tensors[0].is_cuda else destination)
        if destination != -1 or tensors[0].is_cuda
        else torch.device("cpu")
    )
    size = list(tensors[0].size())
    size[dim] = sum(t.size(dim) for t in tensors)
    result = torch.empty(size, dtype=tensors[0].dtype, device=place)
    begin = 0
    for tensor in tensors:
        result.narrow(dim, begin, tensor.size(dim)).copy_(tensor, non_blocking=True)
        begin += tensor.size(dim)
    return result


def broadcast(tensor, devices):
    return [
        tensor
        if tensor.is_cuda and tensor.get_device() == index
        else tensor.to(torch.device("cuda", places.check(index)), non_blocking=True)
        for index in devices
    ]


def _shown(flat, tensors):
    """Tensors of these shapes that share one buffer."""
    found, begin = [], 0
    for tensor in tensors:
        found.append(flat.narrow(0, begin, tensor.numel()).view(tensor.size()))
        begin += tensor.numel()
    return found


def broadcast_coalesced(tensors, devices, buffer_size=10 << 20):
    """Each GPU gets the tensors in buffers of about that size and of one type, of which they are then parts; the first keeps its own."""
    copies = [list(tensors)] + [[None] * len(tensors) for _ in devices[1:]]
    buckets: dict = {}

    def send(positions):
        chosen = [tensors[position] for position in positions]
        flat = torch.cat([t.reshape(-1) for t in chosen]) if len(chosen) > 1 else chosen[0].reshape(-1)
        for number, index in enumerate(devices[1:], 1):
            there = flat.to(torch.device("cuda", places.check(index)), non_blocking=True)
            for position, part in zip(positions, _shown(there, chosen)):
                copies[number][position] = part

    for position, tensor in enumerate(tensors):
        bucket = buckets.setdefault(tensor.dtype, [[], 0])
        bucket[0].append(position)
        bucket[1] += tensor.numel() * tensor.dtype.itemsize
        if bucket[1] >= buffer_size:
            send(buckets.pop(tensor.dtype)[0])
    for positions, _size in buckets.values():
        send(positions)
    return copies


def install() -> None:
    for name, function in (
        ("_scatter", scatter),
        ("_gather", gather),
        ("_broadcast", broadcast),
        ("_broadcast_coalesced", broadcast_coalesced),
    ):
        setattr(torch._C, name, function)
    nccl = torch.cuda.nccl
    nccl.version = lambda: (2, 28, 9)
    nccl.is_available = lambda tensors: len({t.get_device() for t in tensors}) == len(tensors) > 1
    nccl.reduce = nccl.all_reduce = nccl.broadcast = nccl.all_gather = nccl.reduce_scatter = lambda *_args, **_kwargs: (
        None
    )
