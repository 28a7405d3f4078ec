"""`faultline` and `python -m faultline`: the program itself, in place of this interpreter."""

from __future__ import annotations

import os
import sys

from ._program import find_binary


def main() -> None:
    try:
        binary = find_binary(on_path=False)  # there it would find this very script
        os.execv(binary, [binary, *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"faultline: {problem}")


if __name__ == "__main__":
    main()
