"""Values that the program may look at.

Tensors of the planned GPU have no bytes. Small ones have a shadow: a host storage of the same layout on which every operation is computed for real
as long as its inputs have shadows too. So lengths, masks, token ids and counters that come from the program's own data stay exact. What cannot be
known (a loss, an argmax of logits) gets a stand-in that the operation can give (stand_ins.py); the shadow then says `assumed`,
and a note is written where the program reads such a value. With `everything` the shadows have no size limit: the program is computed
for real, on the host.
"""

from __future__ import annotations

import torch

from ..tensors.memory import Memory, Record
from .stand_ins import default

KNOWN_WHOLE_NUMBERS = 1 << 16  # elements; token ids and masks
KNOWN_FRACTIONS = 256
ASSUMED = 1024  # a larger unknown tensor has no shadow at all


class Values:
    def __init__(self, memory: Memory, everything: bool = False):
        self._memory = memory
        self.everything = everything

    def worth_knowing(self, numel: int, dtype: torch.dtype) -> bool:
        if self.everything:
            return True
        return numel <= (KNOWN_FRACTIONS if dtype.is_floating_point or dtype.is_complex else KNOWN_WHOLE_NUMBERS)

    def view(self, tensor: torch.Tensor, record: Record | None = None) -> torch.Tensor | None:
        """The host tensor that stands behind a GPU tensor, sharing the shadow's memory; None when its values are not known."""
        record = record or self._memory.find(tensor)
        if record is None or record.shadow is None:
            return (
                torch.empty(tensor.size(), dtype=tensor.dtype) if record is not None and tensor.numel() == 0 else None
            )
        return torch.empty(0, dtype=tensor.dtype).set_(
            record.shadow, tensor.storage_offset(), tensor.size(), tensor.stride()
        )

    def know(self, tensor: torch.Tensor, host: torch.Tensor, assumed: bool) -> None:
        """tensor (with a storage of its own) has the values of host."""
        record = self._memory.find(tensor)
        if record is None:
            return
        shadow = torch.empty(
            record.size_bytes or tensor.untyped_storage().nbytes(), dtype=torch.uint8
        ).untyped_storage()
        torch.empty(0, dtype=tensor.dtype).set_(shadow, tensor.storage_offset(), tensor.size(), tensor.stride()).copy_(
            host
        )
        record.shadow, record.assumed = shadow, assumed

    def assume(self, tensor: torch.Tensor, value=None) -> None:
        """tensor's values cannot be known: a small one gets stand-ins, a large one none."""
        record = self._memory.find(tensor)
        if record is None or record.shadow is None and tensor.numel() > ASSUMED:
            return
        if tensor.untyped_storage().nbytes() > ASSUMED * 16:
            record.shadow = None
            return
        if record.shadow is None:
            record.shadow = torch.zeros(tensor.untyped_storage().nbytes(), dtype=torch.uint8).untyped_storage()
            if tensor.dtype.is_floating_point:
                torch.empty(0, dtype=tensor.dtype).set_(
                    record.shadow, 0, (record.shadow.nbytes() // tensor.dtype.itemsize,), (1,)
                ).fill_(self.stand_in(tensor))
        self.view(tensor, record).fill_(self.stand_in(tensor) if value is None else value)
        record.assumed = True

    def forget(self, tensor: torch.Tensor) -> None:
        record = self._memory.find(tensor)
        if record is not None:
            record.shadow = None

    def is_assumed(self, tensor: torch.Tensor) -> bool:
        record = self._memory.find(tensor)
        return record is None or record.shadow is None or record.assumed

    def stand_in(self, tensor: torch.Tensor):
        """What an element of tensor, whose values are not known, reads as."""
        record = self._memory.find(tensor)
        known = record.stand_in if record is not None else None
        return (
            default(tensor.dtype)
            if known is None or tensor.dtype is torch.bool and not isinstance(known, bool)
            else known
        )

    def read(self, tensor: torch.Tensor) -> tuple[torch.Tensor, bool]:
        """The values as a host tensor of its own, and whether they are stand-ins."""
        host = self.view(tensor)
        if host is not None:
            return host.clone(), self.is_assumed(tensor)
        return torch.full(
            tensor.size(), self.stand_in(tensor), dtype=tensor.dtype
        ) if tensor.numel() <= ASSUMED else torch.zeros(tensor.size(), dtype=tensor.dtype), True
