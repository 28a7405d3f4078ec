"""What is remembered of the program's modules and optimizers, by what they are: a class may say anything of its hash and of equality (torchmetrics' metrics are told apart by their states, which are not there yet while they are made)."""

from __future__ import annotations

import weakref


class WeakById:
    """A dictionary whose entries go with their keys. No method of a key is called."""

    def __init__(self):
        self._entries: dict[int, tuple[weakref.ref, object]] = {}

    def _entry(self, key):
        entry = self._entries.get(id(key))
        return entry if entry is not None and entry[0]() is key else None

    def __contains__(self, key) -> bool:
        return self._entry(key) is not None

    def items(self) -> list:
        return [(key, value) for reference, value in list(self._entries.values()) if (key := reference()) is not None]

    def __iter__(self):
        return (key for key, _ in self.items())

    def get(self, key, default=None):
        entry = self._entry(key)
        return default if entry is None else entry[1]

    def __getitem__(self, key):
        entry = self._entry(key)
        if entry is None:
            raise KeyError(id(key))
        return entry[1]

    def __setitem__(self, key, value) -> None:
        entries, number = self._entries, id(key)
        entries[number] = weakref.ref(key, lambda _: entries.pop(number, None)), value

    def setdefault(self, key, value):
        if key not in self:
            self[key] = value
        return self[key]

    def pop(self, key) -> None:
        if key in self:
            del self._entries[id(key)]

    def add(self, key) -> None:
        """As a set."""
        self[key] = None
