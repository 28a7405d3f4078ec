"""The version of this package: that of the tool it belongs to, which CMakeLists.txt names."""

from __future__ import annotations

import os
import re


def version() -> str:
    """Of a source tree from its own file, whatever is installed beside it; else of what is installed."""
    tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        with open(os.path.join(tree, "CMakeLists.txt"), encoding="utf-8") as file:
            named = re.search(r"^project\(faultline VERSION ([0-9.]+)", file.read(), re.MULTILINE)
    except OSError:
        named = None
    if named:
        return named[1]
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as version_of

    try:
        return version_of("faultline")
    except PackageNotFoundError:
        raise AttributeError("module 'faultline' has no attribute '__version__': it is not installed") from None
