"""Ragged tensors inside graphs: how long the longest row is only the ends of the rows tell."""

from __future__ import annotations

import math

import numpy as np


def come_to(walk, step) -> bool:
    """Is it a ragged tensor that becomes a dense one? Then its size is known."""
    if step.kind == "RaggedTensorToTensor":
        shape, is_most = _dense(walk.facts, step)
        if shape is not None:
            walk.facts.give(step.outputs[0].tensor, shape)
            if is_most:
                walk.outcome.most.add(step.name)
                walk.facts.loose.add(step.outputs[0].id)
    return False


def _dense(facts, step) -> tuple[tuple | None, bool]:
    """The rows beside each other, each as long as the longest; and whether that is only the most it can be."""
    wanted, values = facts.numbers(step.inputs[0]), facts.shape(step.inputs[1])
    if values is None:
        return None, False
    sizes: list[int] = []
    bounds = set()  # of the result's sides, which are only the most
    for kind, tensor in zip(step.operation.get_attr("row_partition_types"), step.inputs[3:]):
        value, count = facts.values.of(tensor), facts.shape(tensor)
        if kind == b"FIRST_DIM_SIZE":
            numbers = facts.numbers(tensor)
            if numbers is None:
                return None, False
            sizes.append(int(numbers))
            continue
        if count is None:
            return None, False
        if kind == b"ROW_SPLITS" and not sizes:
            sizes.append(count[0] - 1)
        if value is not None:
            numbers = value.numpy()
            lengths = np.diff(numbers) if kind == b"ROW_SPLITS" else np.bincount(np.maximum(numbers, 0))
            sizes.append(int(lengths.max(initial=0)))
        else:
            bounds.add(len(sizes))
            sizes.append(values[0])
    shape = [*sizes, *values[1:]]
    if wanted is not None and wanted.ndim == 1 and wanted.size == len(shape):
        bounds = {at for at in bounds if wanted[at] < 0}
        shape = [size if given < 0 else int(given) for given, size in zip(wanted.tolist(), shape)]
    return tuple(shape), bool(bounds) and math.prod(shape) > 0
