"""The state of a GPU's random numbers as programs see it: 16 bytes, a seed and an offset. Here a generator of the host stands behind it, whose own state is kept by the offset."""

from __future__ import annotations

import struct
import weakref
from collections import OrderedDict

import torch

from ..tensors import places

_MOST = 1000
_STEP = 4  # a GPU's offsets are multiples of it


class RandomState:
    def __init__(self, generator: torch.Generator):
        self._generator = generator
        self._offset = 0
        self._kept: OrderedDict[tuple[int, int], torch.Tensor] = OrderedDict()

    def get(self, device="cuda") -> torch.Tensor:
        self._offset += _STEP
        key = self._generator.initial_seed() % (1 << 64), self._offset
        self._kept[key] = self._generator.get_state()
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return torch.tensor(list(struct.pack("<QQ", *key)), dtype=torch.uint8, device="cpu")

    def set(self, state: torch.Tensor) -> None:
        if state.numel() != 16 or state.dtype is not torch.uint8:
            raise RuntimeError(
                "RNG state is wrong size" if state.numel() != 16 else "RNG state must be a torch.ByteTensor"
            )
        seed, offset = struct.unpack("<QQ", bytes(state.tolist()))
        kept = self._kept.get((seed, offset))
        if kept is not None:
            self._generator.set_state(kept)
        else:  # one that the program made: from a file, or with another offset
            self._generator.manual_seed(seed)
        self._offset = max(self._offset, offset % (1 << 62) // _STEP * _STEP)


class Generator(torch.Generator):
    """A generator of the GPU: the numbers are the host's."""

    _place = None

    def __new__(cls, device="cpu"):
        made = super().__new__(cls, "cpu")
        if torch.device(device).type == "cuda":
            made._place = places.of(device)
            _of_gpu[made._cdata] = made
        return made

    @property
    def device(self):
        return super().device if self._place is None else torch.device("cuda", self._place)


# By what is in C++: an operation gets another object for it.
_of_gpu: weakref.WeakValueDictionary[int, Generator] = weakref.WeakValueDictionary()


def check_generator(kwargs, wanted: str, operands=()) -> None:
    """Numbers of one device are not drawn from a generator of another; behind each of them is the host's, which would. On meta none are drawn."""
    generator, place = kwargs.get("generator"), kwargs.get("device")
    if generator is None or (place is not None and place.type == "meta"):
        return
    if any(operand.device.type == "meta" for operand in operands):
        return
    found = _of_gpu.get(generator._cdata, generator).device.type
    if found != wanted:
        raise RuntimeError(f"Expected a '{wanted}' device type for generator but found '{found}'")
