"""Checkpoints of a dry run. Tensors of the GPU have no values, so torch.save writes what it is given without them, in a form that only torch.load under the
same dry run reads; tensors of the host are written whole. Real checkpoints are loaded as ever.

Whatever is written goes to the dry run's own layer of files. Where the user lets the program write for real, such a file might replace a true
checkpoint: then torch.save keeps it in memory.
"""

from __future__ import annotations

import copy
import ctypes
import io
import os
import pickle

import torch

from ...session.unplannable import Unplannable
from ..tensors import storages

_place = None  # of what is being loaded

_LARGEST_TO_FILL = 64 << 20  # bytes; numbers of larger host tensors that nobody has read are not written


def _new(device: str, size_bytes: int) -> torch.UntypedStorage:
    """A storage where map_location wants it."""
    target = torch.device(_place) if isinstance(_place, (str, int, torch.device)) else torch.device(device)
    storage = torch.empty(size_bytes, dtype=torch.uint8, device=target).untyped_storage()
    if isinstance(_place, dict):
        return storage.to(device=_place.get(device, device))
    return (_place(storage, device) or storage) if callable(_place) else storage


def _filled(data: bytes) -> torch.UntypedStorage:
    storage = _new("cpu", len(data))
    if data:
        storages.whole(storage).copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
    return storage


class _Pickler(pickle.Pickler):
    """Storages of the GPU by their size alone."""

    def __init__(self, buffer, host, notes):
        super().__init__(buffer, protocol=4)
        self._host, self._notes = host, notes

    def reducer_override(self, obj):
        if isinstance(obj, torch.storage.TypedStorage):
            return _typed, (obj._untyped_storage, obj.dtype)
        if not isinstance(obj, torch.UntypedStorage):
            return NotImplemented
        if obj.device.type == "cpu" and obj.nbytes() <= _LARGEST_TO_FILL:
            self._host.fill(obj)
        if obj.device.type == "cpu" and not self._host.is_unfilled(storages.whole(obj)):
            return _filled, (ctypes.string_at(obj.data_ptr(), obj.nbytes()) if obj.nbytes() else b"",)
        if obj.device.type == "cpu":
            self._notes.add(
                "value",
                "torch.save kept the sizes of large host tensors whose numbers nobody had read, and not the numbers",
            )
        return _new, (str(obj.device), obj.nbytes())


def _typed(storage: torch.UntypedStorage, dtype: torch.dtype) -> torch.storage.TypedStorage:
    return torch.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


class _Kept:
    """A module in this process's memory, with tensors of no device: what the file of it stands for."""

    modules: list = []  # and where its tensors were

    def __init__(self, module: torch.nn.Module):
        tensors = [*module.parameters(), *module.buffers()]
        places = {t.device for t in tensors}
        memo = {id(t): _without_device(t) for t in tensors}
        self.modules.append((copy.deepcopy(module, memo), max(places, key=str, default=torch.device("cpu"))))

    def __reduce__(self):
        return _made_again, (os.getpid(), len(self.modules) - 1)


def _without_device(tensor: torch.Tensor) -> torch.Tensor:
    bare = torch.empty_like(tensor, device="meta")
    return torch.nn.Parameter(bare, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else bare


def _made_again(process: int, number: int) -> torch.nn.Module:
    if process != os.getpid():
        raise Unplannable("a scripted module that another process saved, whose class is known to no other")
    module, place = _Kept.modules[number]
    target = torch.device(_place) if isinstance(_place, (str, int, torch.device)) else place
    return copy.deepcopy(module).to_empty(device=target)


class CheckpointFiles:
    def __init__(self, notes, host, confined: bool, token: str):
        self._magic = (
            f"faultline dry run {token}\n".encode()
        )  # of this run: a pickle of anybody else's is not unpickled
        self._notes = notes
        self._host = host
        self._confined = confined
        self._in_memory: dict[str, bytes] = {}

    def install(self) -> None:
        def planned_save(obj, f, *_args, **_kwargs):
            self._save(obj, f)

        def around(load):
            def planned_load(f, map_location=None, *args, **kwargs):
                data = self._find(f)
                return load(f, map_location, *args, **kwargs) if data is None else _unpickled(data, map_location)

            return planned_load

        def around_saving_scripts(save):
            def planned_jit_save(module, f, *args, **kwargs):
                if isinstance(module, torch.jit.ScriptModule):  # traced: PyTorch writes zeros for what lies on the GPU
                    save(module, f, *args, **kwargs)
                else:
                    self.save_module(module, f)

            return planned_jit_save

        torch.save = torch.serialization.save = planned_save
        torch.jit.save = around_saving_scripts(torch.jit.save)
        torch.load = torch.serialization.load = around(torch.load)
        torch.jit.load = around(torch.jit.load)

    def save_module(self, module, f, _extra_files=None) -> None:
        """One that torch.jit.script was asked for, and that runs eagerly here. A script needs no class to be made of again, a pickle does: what has a class that cannot be found by its name stays in this process."""
        try:
            self._save(module, f)
        except (AttributeError, TypeError, pickle.PicklingError):
            self._save(_Kept(module), f)

    def _save(self, obj, f) -> None:
        buffer = io.BytesIO()
        buffer.write(self._magic)
        _Pickler(buffer, self._host, self._notes).dump(obj)
        data = buffer.getvalue()
        name = _name_of(f)
        if not self._confined and not isinstance(f, io.BytesIO):
            self._notes.add("skipped", f"torch.save wrote nothing to {name!r}" if name else "torch.save wrote nothing")
            self._in_memory[os.path.abspath(name)] = data[len(self._magic) :]
            return
        if not isinstance(f, (str, os.PathLike)):
            f.write(data)
            return
        parent = os.path.dirname(os.path.abspath(name))
        if not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {os.path.dirname(name)} does not exist.")  # PyTorch's words
        with open(f, "wb") as file:
            file.write(data)

    def _find(self, f) -> bytes | None:
        """What torch.save wrote in this dry run; None: it is something else."""
        name = _name_of(f)
        if name and (known := self._in_memory.get(os.path.abspath(name))) is not None:
            return known
        if isinstance(f, (str, os.PathLike)):
            try:
                with open(f, "rb") as file:
                    return self._rest_of(file)
            except OSError:
                return None
        return self._rest_of(f)

    def _rest_of(self, file) -> bytes | None:
        """The pickle in a file of ours; a file of another kind is left where it stood."""
        try:
            start = file.tell()
            if file.read(len(self._magic)) == self._magic:
                return file.read()
            file.seek(start)
        except (AttributeError, OSError, ValueError):  # it cannot be looked into without taking something away
            pass
        return None


def _name_of(f) -> str:
    name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "")
    return os.fspath(name) if isinstance(name, (str, os.PathLike)) else ""


def _unpickled(data: bytes, map_location):
    global _place
    _place = map_location
    try:
        return pickle.loads(data)
    finally:
        _place = None
