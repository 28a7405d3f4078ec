"""The program's work on the host: it runs as it is, but large tensors of random numbers are not filled.

A model built on the host is gigabytes of random numbers that nobody reads. Their tensors are real, but come from fresh pages that are never touched,
so they read as zeros and take no memory; what initialises or transforms them is passed over. Integers are always computed.
"""
from __future__ import annotations

import torch

from .memory import storage_id
from .outcome import replace_tensors
from .special_operations import _overloads, written

UNFILLED = 1 << 16  # elements; smaller tensors are cheap to fill
_FILLED_BY = set(_overloads("zeros", "ones", "full", "rand", "randn", "normal", "empty", "empty_strided", "new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided",
                            "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "empty_like", "empty_permuted"))
_NEVER = set(_overloads("set_", "resize_", "_pin_memory", "is_pinned", "_local_scalar_dense", "equal", "_has_compatible_shallow_copy_type"))


def _is_fraction(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


class HostTensors:
    def __init__(self, dry):
        self._dry = dry
        self._unfilled: dict[int, torch.UntypedStorage] = {}
        self.made: dict[int, int] = {}  # storage → stack of the operation that made it, the latest few thousand

    def is_unfilled(self, tensor: torch.Tensor) -> bool:
        return bool(self._unfilled) and not tensor.is_cuda and storage_id(tensor) in self._unfilled

    def unfilled(self, size, stride, dtype) -> torch.Tensor:
        """A tensor whose pages are not touched."""
        tensor = torch.empty(size, dtype=dtype) if stride is None else torch.empty_strided(size, stride, dtype=dtype)
        if tensor.numel() >= UNFILLED:
            self._mark(tensor)
        else:
            tensor.zero_()
        return tensor

    def _mark(self, tensor) -> None:
        import weakref
        key = storage_id(tensor)
        self._unfilled[key] = weakref.ref(tensor.untyped_storage(), lambda _: self._unfilled.pop(key, None))

    def run(self, func, args, kwargs, operands):
        if self._dry.values.everything or func in _NEVER:
            return self._real(func, args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
            return self._dry.progress.pinned(self.run(func, args, kwargs, operands))
        place = kwargs.get("device")
        if place is not None and place.type != "cpu":
            return func(*args, **kwargs)
        if self._unfilled and any(storage_id(t) in self._unfilled for t in operands if t.device.type == "cpu"):
            return self._with_unfilled(func, args, kwargs, operands)
        if func in _FILLED_BY:
            return self._factory(func, args, kwargs)
        return self._real(func, args, kwargs)

    def _real(self, func, args, kwargs):
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor) and result.layout is torch.strided and not result.is_nested and result.dim():
            if len(self.made) > 4096:
                self.made.clear()
            self.made[storage_id(result)] = self._dry.memory.stacks.here()
        return result

    def _look(self, func, args, kwargs):
        meta_args, meta_kwargs = replace_tensors(args, kwargs, lambda t: torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta") if t.dim() else t)
        if "device" in meta_kwargs or not any(isinstance(a, torch.Tensor) for a in args):
            meta_kwargs["device"] = torch.device("meta")
        if meta_kwargs.get("generator") is not None:
            meta_kwargs["generator"] = None
        return func(*meta_args, **meta_kwargs)

    def _factory(self, func, args, kwargs):
        dtype = kwargs.get("dtype") or (args[0].dtype if args and isinstance(args[0], torch.Tensor) else torch.get_default_dtype())
        if not _is_fraction(dtype):
            return self._real(func, args, kwargs)
        try:
            look = self._look(func, args, kwargs)
        except (NotImplementedError, TypeError):
            return self._real(func, args, kwargs)
        if look.numel() < UNFILLED or not _is_fraction(look.dtype):
            return self._real(func, args, kwargs)
        return self.unfilled(look.size(), look.stride(), look.dtype)

    def _with_unfilled(self, func, args, kwargs, operands):
        returns = func._schema.returns
        if returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns):
            return func(*args, **kwargs)  # a view
        targets = written(func, args, kwargs)
        if targets:
            if any(self.is_unfilled(operands[index]) for index in targets):
                return operands[targets[0]] if len(returns) == 1 else (None if not returns else func(*args, **kwargs))
            return func(*args, **kwargs)
        try:
            look = self._look(func, args, kwargs)
        except Exception:
            return func(*args, **kwargs)
        looks = look if isinstance(look, (list, tuple)) else [look]
        if not all(isinstance(l, torch.Tensor) and _is_fraction(l.dtype) for l in looks):
            return func(*args, **kwargs)
        made = [self.unfilled(l.size(), l.stride(), l.dtype) for l in looks]
        return type(look)(made) if isinstance(look, (list, tuple)) else made[0]
