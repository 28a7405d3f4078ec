"""Checkpoints of a dry run. A file written by one would hold no weights, and might replace one that does: torch.save keeps what it is given in memory,
without the tensors' values, and torch.load finds it there. Real checkpoints are loaded as ever.
"""
from __future__ import annotations

import io
import os
import pickle

import torch

from . import storages

_MAGIC = b"faultline dry run\n"
_SMALL = 1 << 16  # bytes; a smaller tensor of the host keeps its values
_place = None     # of what is being loaded


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
    """Storages by their size alone."""

    def reducer_override(self, obj):
        if isinstance(obj, torch.storage.TypedStorage):
            return torch.storage.TypedStorage, (), {"_untyped_storage": obj._untyped_storage, "dtype": obj.dtype}, None, None, _typed
        if not isinstance(obj, torch.UntypedStorage):
            return NotImplemented
        if obj.device.type == "cpu" and obj.nbytes() <= _SMALL:
            return _filled, (bytes(storages.whole(obj).tolist()),)
        return _new, (str(obj.device), obj.nbytes())


def _typed(storage, state) -> None:
    storage._untyped_storage, storage.dtype = state["_untyped_storage"], state["dtype"]


class Saved:
    def __init__(self, notes):
        self._notes = notes
        self._files: dict[str, bytes] = {}

    def install(self) -> None:
        load = torch.load

        def planned_save(obj, f, *_args, **_kwargs):
            self._save(obj, f)

        def planned_load(f, map_location=None, *args, **kwargs):
            data = self._find(f)
            if data is None:
                return load(f, map_location, *args, **kwargs)
            return _unpickled(data, map_location)
        torch.save = torch.serialization.save = planned_save
        torch.load = torch.serialization.load = planned_load

    def _save(self, obj, f) -> None:
        buffer = io.BytesIO()
        _Pickler(buffer).dump(obj)
        if isinstance(f, io.BytesIO):
            f.write(_MAGIC + buffer.getvalue())
            return
        name = _name_of(f)
        self._notes.add("skipped", f"torch.save wrote nothing to {name!r}" if name else "torch.save wrote nothing")
        if name:
            self._files[os.path.abspath(name)] = buffer.getvalue()

    def _find(self, f) -> bytes | None:
        if isinstance(f, io.BytesIO):
            rest = f.getvalue()[f.tell():]
            return rest[len(_MAGIC):] if rest.startswith(_MAGIC) else None
        name = _name_of(f)
        return self._files.get(os.path.abspath(name)) if name else None


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
