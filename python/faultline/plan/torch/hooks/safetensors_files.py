"""Files of safetensors from a dry run. Their form is kept: a header, then room for every tensor, as a hole in the file that reads as zeros. So a model that is
larger than this machine's memory or disk can be saved, and loaded again, within the dry run. Where the program writes for real, nothing is written: a file of zeros
might replace a true one.
"""

from __future__ import annotations

import json
import sys

from ...._import_watch import ImportWatch

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
}


def install(notes, confined: bool, around_save) -> None:
    """Now, or when the program imports it."""
    if "safetensors.torch" in sys.modules:
        _patch(sys.modules["safetensors.torch"], notes, confined, around_save)
        return
    ImportWatch(("safetensors.torch",), lambda _name, module: _patch(module, notes, confined, around_save))


def _patch(module, notes, confined, around_save) -> None:
    save_file = module.save_file

    def planned_save_file(tensors, filename, metadata=None):
        if not any(tensor.is_cuda for tensor in tensors.values()) or any(
            _name(tensor) is None for tensor in tensors.values()
        ):
            return save_file(tensors, filename, metadata)
        if not confined:
            return notes.add("skipped", f"safetensors wrote nothing to {str(filename)!r}")
        notes.add("skipped", "safetensors wrote zeros: tensors of the GPU have no values in a dry run")
        header, size_bytes = _header(tensors, metadata)
        with open(filename, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + size_bytes)
        return None

    module.save_file = around_save(planned_save_file)


def _name(tensor) -> str | None:
    return _NAMES.get(str(tensor.dtype).removeprefix("torch."))


def _header(tensors, metadata) -> tuple[bytes, int]:
    entries, at = ({"__metadata__": metadata} if metadata else {}), 0
    for name in sorted(
        tensors, key=lambda name: (-tensors[name].element_size(), name)
    ):  # aligned, as safetensors has them
        size_bytes = tensors[name].numel() * tensors[name].element_size()
        entries[name] = {
            "dtype": _name(tensors[name]),
            "shape": list(tensors[name].shape),
            "data_offsets": [at, at + size_bytes],
        }
        at += size_bytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    return header + b" " * (-len(header) % 8), at
