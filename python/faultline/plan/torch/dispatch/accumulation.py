"""Gradients that meet."""

from __future__ import annotations

import torch

from ..operations.operations import HANDLERS
from ..release.older_torch import use_count
from ..tensors import tensors

Tensor = torch.Tensor


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
HANDLERS[torch.ops.aten.add.Tensor] = accumulation.add
