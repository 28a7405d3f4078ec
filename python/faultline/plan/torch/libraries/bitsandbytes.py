"""bitsandbytes: its own code runs, and the functions of its native library that would run on the GPU do nothing.

So whatever it allocates (quantised weights, their scales, 8-bit optimizer state, what is dequantised for a product) has the sizes that its own code gives it.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
import os

from ...._import_watch import ImportWatch
from ..tensors.memory import gib

_LOGGER = "bitsandbytes.cextension"


class _Function:
    """A native function: whoever calls it gets 0, which is success to those that look."""

    def __init__(self, name: str, notes):
        self.__name__, self._notes = name, notes

    def __call__(self, *_args):
        self._notes.add(
            "kernel",
            "bitsandbytes's kernels did nothing: what its own code allocates was counted, their numbers were not computed",
            line="",
        )
        return 0


class _NativeLibrary:
    compiled_with_cuda = True

    def __init__(self, on_host, notes):
        self._on_host, self._notes = on_host, notes
        self._functions: dict = {}
        self._managed: list = []
        self._managed_bytes = 0

    def __getattr__(self, name: str):
        known = self._functions.get(name)
        if known is None:
            known = self._functions[name] = self._find(name)
        return known

    def __getitem__(self, name: str):
        return getattr(self, name)

    def _find(self, name: str):
        if name == "cget_managed_ptr":
            return self._managed_pointer
        function = getattr(self._on_host, name, None) if self._on_host is not None else None
        return function if function is not None else _Function(name, self._notes)

    def _managed_pointer(self, size):
        """Memory that the driver moves between host and GPU: addresses without memory until somebody writes there."""
        size_bytes = max(int(getattr(size, "value", size)), 1)
        region = mmap.mmap(-1, size_bytes)
        self._managed.append(region)
        self._managed_bytes += size_bytes
        self._notes.set_total(
            "mode",
            "bitsandbytes paged",
            f"paged optimizer state of bitsandbytes ({gib(self._managed_bytes)}) lies in managed memory, which the driver keeps on the host while the GPU has no room: it is not counted",
        )
        return ctypes.addressof(ctypes.c_char.from_buffer(region))


def install(session) -> None:
    def before(_name):
        logging.getLogger(_LOGGER).disabled = True  # it tells at length that there is no CUDA

    def after(_name, module):
        logging.getLogger(_LOGGER).disabled = False
        try:
            on_host = ctypes.CDLL(os.path.join(os.path.dirname(module.__file__), "libbitsandbytes_cpu.so"))
        except OSError:
            on_host = None
        module.lib = _NativeLibrary(on_host, session.notes)

    ImportWatch(("bitsandbytes.cextension",), after, before)
