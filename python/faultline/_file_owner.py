"""Whose a source file is: Faultline's, a library's or the program's. Folders decide, not words in a path."""

import os

OWN_FOLDER = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), ""
)  # with the slash: a neighbour's name may begin like ours
_PYTHON = os.path.join(os.path.dirname(os.__file__), "")


def is_own(path: str) -> bool:
    """Is it a file of Faultline's?"""
    return path.startswith((OWN_FOLDER, "<frozen faultline."))


def is_library(path: str) -> bool:
    """Is it a file of Python itself or of an installed package, rather than of the program?"""
    return path.startswith(("<frozen", _PYTHON)) or "/site-packages/" in path or "/dist-packages/" in path
