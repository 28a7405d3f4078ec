"""Where the program `faultline` is: inside this package, in the build tree, or on the PATH."""

from __future__ import annotations

import os
import shutil

_HERE = os.path.dirname(os.path.abspath(__file__))


def find_binary(on_path: bool = True) -> str:
    for path in (("bin", "faultline"), ("..", "..", "build", "faultline")):
        if os.path.isfile(found := os.path.join(_HERE, *path)):
            return os.path.normpath(found)
    found = os.environ.get("FAULTLINE") or (on_path and shutil.which("faultline"))
    if not found:
        raise FileNotFoundError("the faultline program was not found: put it on the PATH, or name it in FAULTLINE")
    return found
