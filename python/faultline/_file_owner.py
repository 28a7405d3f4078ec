"""Whose a source file is: Faultline's, a library's or the program's. Folders decide, not words in a path."""

import functools
import os
import sys

OWN_FOLDER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), ""
)  # with the slash: a neighbour's name may begin like ours
_PYTHON = os.path.join(os.path.dirname(os.__file__), "")


def is_own(path: str) -> bool:
    """Is it a file of Faultline's?"""
    return path.startswith((OWN_FOLDER, "<frozen faultline."))


def is_library(path: str) -> bool:
    """Is it a file of Python itself or of an installed package, or code that one writes for itself, rather than of the program?"""
    return path.startswith(("<frozen", _PYTHON)) or _is_installed(path) or is_generated(path)


def _is_installed(path: str) -> bool:
    return "/site-packages/" in path or "/dist-packages/" in path


def is_generated(path: str) -> bool:
    """Is it source that a library made and runs (dataclasses, attrs, torch.fx, the message passing of PyTorch Geometric), which nobody can go to and change?"""
    if path == "<string>":
        return "-c" not in getattr(sys, "orig_argv", ["-c"])[1:]  # python -c is the program itself
    if path.startswith("<"):
        return "generated" in path or path.startswith(("<eval_with_key>", "<__array_function__", "<decorator-gen"))
    return _is_written_by_a_library(path)


@functools.lru_cache(maxsize=4096)
def _is_written_by_a_library(path: str) -> bool:
    """A module below an installed package that lies elsewhere."""
    names = [name for name, module in list(sys.modules.items()) if _file_of(module) == path]
    parents = [sys.modules.get(name.partition(".")[0]) for name in names if "." in name]
    return any(_is_installed(_file_of(parent)) for parent in parents)


def _file_of(module) -> str:
    file = getattr(module, "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""
