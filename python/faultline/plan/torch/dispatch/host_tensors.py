"""The program's work on the host: it is done for real, but large tensors of random numbers are made only when somebody reads them.

A model built on the host is gigabytes of numbers that go to the GPU and are never looked at. The storage of such a tensor comes from fresh pages that are not
touched; the operations that fill it (an initialisation, a change in place, a conversion) are kept as a list, and carried out at the first read. Integers, and the
first numbers of a program (REAL), are made at once.
"""

from __future__ import annotations

import threading

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..operations.operations import overloads, written
from ..operations.outcome import flatten, replace_tensors
from ..release.older_torch import StorageRef
from ..tensors.memory import gib, storage_id

UNFILLED = 1 << 16  # elements; smaller tensors are always made at once
REAL = (
    1 << 24
)  # elements of all larger ones together that are made at once, so that a seed gives a small program its own numbers
_DEEPEST = 16  # lists that stand on each other
_LONGEST = 64  # operations of one list
_MOST_FILLED = 256  # of which it is known that nobody has written into them since
aten = torch.ops.aten


def _filled_with(value_at: int):
    return lambda args, kwargs: (
        aten.fill_.Scalar,
        (kwargs.get("fill_value", args[value_at] if len(args) > value_at else 0),),
    )


_FILLED_BY = {}  # operation → what fills its result
for _names, _step in (
    (
        ("empty", "empty_strided", "new_empty", "new_empty_strided", "empty_like", "empty_permuted"),
        lambda args, kwargs: None,
    ),
    (("zeros", "new_zeros", "zeros_like"), lambda args, kwargs: (aten.zero_.default, ())),
    (("ones", "new_ones", "ones_like"), lambda args, kwargs: (aten.fill_.Scalar, (1,))),
    (("full", "full_like"), _filled_with(1)),
    (("new_full",), _filled_with(2)),
    (("rand", "rand_like"), lambda args, kwargs: (aten.uniform_.default, ())),
    (("randn", "randn_like"), lambda args, kwargs: (aten.normal_.default, ())),
):
    _FILLED_BY.update(dict.fromkeys(overloads(*_names), _step))
_FILLED_BY[aten.normal.float_float] = lambda args, kwargs: (aten.normal_.default, tuple(args[:2]))
_RANDOM = set(
    overloads("uniform_", "normal_", "bernoulli_", "exponential_", "geometric_", "log_normal_", "cauchy_", "random_")
)
_LEFT_FOR_LATER = set(overloads("clone", "_to_copy", "mul", "div", "add", "sub", "neg", "cat", "stack"))
_READS_NOTHING = set(overloads("set_", "is_pinned", "_has_compatible_shallow_copy_type"))
_AT_ONCE = set(overloads("resize_", "_pin_memory"))


def _has_storage(value) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested


class _Part:
    """An operand of a kept operation: a place in the storage that is being filled, or in what another one held at that time."""

    __slots__ = ("steps", "storage", "size_bytes", "look", "dtype")

    def __init__(self, tensor: torch.Tensor, pending: _Pending | None):
        self.steps = None if pending is None else pending.steps
        self.storage = None if pending is None else pending.storage
        self.size_bytes = tensor.untyped_storage().nbytes()
        self.look, self.dtype = (tensor.storage_offset(), tensor.size(), tensor.stride()), tensor.dtype

    def on(self, storage: torch.UntypedStorage) -> torch.Tensor:
        return torch.empty(0, dtype=self.dtype).set_(storage, *self.look)


class _Pending:
    """A storage that is not filled yet, and what will."""

    __slots__ = ("storage", "steps", "depth")

    def __init__(self, storage, steps: tuple = (), depth: int = 0):
        self.storage, self.steps, self.depth = storage, steps, depth


def _is_fraction(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point


def _room_bytes() -> int:
    """Half of what the machine has left."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) << 9 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 1 << 30


class HostTensors:
    def __init__(self, dry):
        self._dry = dry
        self._unfilled: dict[int, _Pending] = {}
        self._as_steps_left_them: dict[
            int, tuple
        ] = {}  # storages that were filled for others and not touched since: the steps
        self._made_at_once = 0
        self._lock = threading.RLock()
        self.made: dict[int, int] = {}  # storage → stack of the operation that made it, the latest few thousand

    # --- which are not filled

    def _pending(self, tensor: torch.Tensor) -> _Pending | None:
        if not self._unfilled or tensor.device.type != "cpu" or tensor.layout is not torch.strided or tensor.is_nested:
            return None
        return self._unfilled.get(storage_id(tensor))

    def is_unfilled(self, tensor: torch.Tensor) -> bool:
        return self._pending(tensor) is not None

    def unfilled(self, size, stride, dtype, steps: tuple = (), depth: int = 0) -> torch.Tensor:
        """A tensor whose pages are not touched."""
        tensor = torch.empty(size, dtype=dtype) if stride is None else torch.empty_strided(size, stride, dtype=dtype)
        if tensor.numel() < UNFILLED:
            return tensor.zero_()
        self._mark(tensor.untyped_storage(), steps, depth)
        return tensor

    def _mark(self, storage, steps, depth) -> None:
        key = storage._cdata
        self._unfilled[key] = _Pending(StorageRef(storage, lambda _: self._unfilled.pop(key, None)), steps, depth)

    def like(self, storage: torch.UntypedStorage, copy: torch.UntypedStorage) -> torch.UntypedStorage:
        """copy, made of a storage's bytes, has its values also where they are still to come."""
        if pending := self._unfilled.get(storage._cdata):
            self._mark(copy, pending.steps, pending.depth)
        return copy

    # --- filling

    def fill(self, storage: torch.UntypedStorage) -> None:
        """Somebody reads the bytes, or writes them by another way than an operation."""
        self._as_steps_left_them.pop(storage._cdata, None)
        if not self._unfilled or storage._cdata not in self._unfilled:
            return
        with self._lock, _disable_current_modes(), torch.no_grad():
            pending = self._unfilled.get(storage._cdata)
            if pending is None:
                return
            if storage.nbytes() > _room_bytes():
                self._dry.notes.add(
                    "value",
                    f"{gib(storage.nbytes())} of host numbers are read that were left out, and there is no memory to make them: zeros",
                )
            else:
                if any(step[0] in _RANDOM for step in pending.steps):
                    self._dry.notes.add(
                        "value",
                        "a large tensor's random numbers were made when they were first read: they are others than the seed gives",
                    )
                self._replay(pending.steps, storage)
            self._unfilled.pop(storage._cdata, None)

    def _fill_all(self, operands) -> None:
        for operand in operands:
            if self._pending(operand) is not None:
                self.fill(operand.untyped_storage())

    def _replay(self, steps, storage) -> None:
        for func, args, kwargs, state in steps:
            args, kwargs = self._with_parts(args, kwargs, storage)
            if state is None:
                func(*args, **kwargs)
                continue
            generator = kwargs.get("generator") or torch.default_generator
            now = generator.get_state()
            generator.set_state(state)
            func(*args, **kwargs)
            generator.set_state(now)

    def _with_parts(self, args, kwargs, storage):
        def one(value):
            if isinstance(value, _Part):
                return value.on(storage if value.steps is None else self._as_it_was(value))
            if type(value) is dict:
                return {name: one(v) for name, v in value.items()}
            return type(value)(one(v) for v in value) if type(value) in (list, tuple) else value

        return tuple(one(a) for a in args), {name: one(value) for name, value in kwargs.items()}

    def _as_it_was(self, part: _Part) -> torch.UntypedStorage:
        """What another storage held: that storage itself, if it has not been written into since."""
        source = part.storage()
        pending = self._unfilled.get(source._cdata) if source is not None else None
        if pending is not None and pending.steps is part.steps:
            self.fill(source)
            if len(self._as_steps_left_them) >= _MOST_FILLED:
                self._as_steps_left_them.clear()
            self._as_steps_left_them[source._cdata] = part.steps
            return source
        if source is not None and self._as_steps_left_them.get(source._cdata) is part.steps:
            return source
        copy = torch.empty(part.size_bytes, dtype=torch.uint8).zero_().untyped_storage()
        self._replay(part.steps, copy)
        return copy

    # --- the way of one operation

    def run(self, func, args, kwargs, operands):
        if self._dry.values.everything:
            return self._real(func, args, kwargs)
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
            return self._dry.progress.pinned(self.run(func, args, kwargs, operands))
        place = kwargs.get("device")
        if (
            place is not None
            and place.type != "cpu"
            or func in _READS_NOTHING
            or place is None
            and any(t.is_meta for t in operands)
        ):
            return func(*args, **kwargs)
        if self._as_steps_left_them:
            for index in written(func, args, kwargs):
                if _has_storage(operands[index]):
                    self._as_steps_left_them.pop(storage_id(operands[index]), None)
        if self._unfilled and any(self._pending(t) is not None for t in operands):
            return self._with_unfilled(func, args, kwargs, operands)
        if func in _FILLED_BY:
            return self._factory(func, args, kwargs)
        return self._real(func, args, kwargs)

    def _real(self, func, args, kwargs):
        result = func(*args, **kwargs)
        if (
            isinstance(result, torch.Tensor)
            and result.layout is torch.strided
            and not result.is_nested
            and result.dim()
        ):
            if len(self.made) > 4096:
                self.made.clear()
            key = storage_id(result)
            if key not in self.made or not any(_has_storage(a) and storage_id(a) == key for a in args):
                self.made[key] = self._dry.memory.stacks.here()  # a view of another was made where that was
        return result

    def _look(self, func, args, kwargs):
        meta_args, meta_kwargs = replace_tensors(
            args,
            kwargs,
            lambda t: torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device="meta") if t.dim() else t,
        )
        if "device" in meta_kwargs or not flatten(args, kwargs):
            meta_kwargs["device"] = torch.device("meta")
        if meta_kwargs.get("generator") is not None:
            meta_kwargs["generator"] = None
        return func(*meta_args, **meta_kwargs)

    def _factory(self, func, args, kwargs):
        dtype = kwargs.get("dtype") or (
            args[0].dtype if args and isinstance(args[0], torch.Tensor) else torch.get_default_dtype()
        )
        if not _is_fraction(dtype):
            return self._real(func, args, kwargs)
        try:
            look = self._look(func, args, kwargs)
        except (NotImplementedError, TypeError):
            return self._real(func, args, kwargs)
        if look.numel() < UNFILLED or self._made_at_once + look.numel() <= REAL:
            self._made_at_once += look.numel() if look.numel() >= UNFILLED else 0
            return self._real(func, args, kwargs)
        result = self.unfilled(look.size(), look.stride(), look.dtype)
        step = _FILLED_BY[func](args, kwargs)
        if step is not None:
            generator = {"generator": kwargs["generator"]} if kwargs.get("generator") is not None else {}
            self._keep(self._pending(result), step[0], (_Part(result, None), *step[1]), generator)
        return result

    def _keep(self, pending: _Pending, func, args, kwargs) -> None:
        state = None
        if func in _RANDOM:
            generator = kwargs.get("generator") or torch.default_generator
            state = generator.get_state()
            torch.empty(1).uniform_(generator=generator)  # the next ones are others
        pending.steps = (*pending.steps, (func, args, kwargs, state))

    def _with_unfilled(self, func, args, kwargs, operands):
        returns = func._schema.returns
        if returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns):
            return func(*args, **kwargs)  # a view
        targets = written(func, args, kwargs)
        if self._can_wait(func, args, kwargs, operands, targets):
            if targets:
                return self._later_in_place(func, args, kwargs, operands, operands[targets[0]])
            look = self._look(func, args, kwargs)
            if _is_fraction(look.dtype) and look.numel() >= UNFILLED:
                return self._later(func, args, kwargs, operands, look)
        self._fill_all(operands)
        return self._real(func, args, kwargs)

    def _can_wait(self, func, args, kwargs, operands, targets) -> bool:
        """Is it an operation whose result, or whose target, need not be there yet?"""
        if func in _AT_ONCE or len(func._schema.returns) != 1 or any(t.device.type != "cpu" for t in operands):
            return False
        if (
            targets
            and (len(targets) > 1 or self._pending(operands[targets[0]]) is None or "out" in kwargs)
            or not targets
            and func not in _LEFT_FOR_LATER
        ):
            return False
        waiting = [pending for pending in map(self._pending, operands) if pending is not None]
        if any(p.depth >= _DEEPEST or len(p.steps) >= _LONGEST for p in waiting) or any(
            t.numel() > UNFILLED for t in operands if self._pending(t) is None
        ):
            return False
        try:
            self._look(func, args, kwargs)
        except Exception:
            return False  # what refuses it is the real one
        return True

    def _parts(self, args, kwargs, target):
        own = None if target is None else storage_id(target)

        def part(tensor):
            pending = self._pending(tensor)
            if pending is None:
                return tensor.detach().clone()
            return _Part(tensor, None if storage_id(tensor) == own else pending)

        return replace_tensors(args, kwargs, part)

    def _depth(self, operands) -> int:
        return 1 + max(pending.depth for pending in map(self._pending, operands) if pending is not None)

    def _later_in_place(self, func, args, kwargs, operands, target):
        pending = self._pending(target)
        if any(self._pending(t) not in (None, pending) for t in operands):
            pending.depth = self._depth(operands)
        self._keep(pending, func, *self._parts(args, kwargs, target))
        return target

    def _later(self, func, args, kwargs, operands, look):
        given_args, given_kwargs = self._parts(args, kwargs, None)
        depth = self._depth(operands)
        result = self.unfilled(look.size(), look.stride(), look.dtype, depth=depth)
        place = _Part(result, None)
        self._keep(self._pending(result), _copied_from, (place, func, given_args, given_kwargs), {})
        return result


def _copied_from(target, func, args, kwargs):
    target.copy_(func(*args, **kwargs))
