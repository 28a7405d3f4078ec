"""`faultline` and `python -m faultline`: the program itself, in place of this interpreter."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and sys.path and os.path.abspath(sys.path[0] or ".") == os.getcwd():
    del sys.path[0]  # python -m puts the working folder there: nothing of it is to be imported

from ._program import find_binary  # noqa: E402


def main() -> None:
    try:
        binary = find_binary(on_path=False)  # there it would find this very script
        os.execv(binary, [binary, *sys.argv[1:]])
    except OSError as problem:
        sys.exit(f"faultline: {problem}")


if __name__ == "__main__":
    main()
