"""What the dry run cannot answer."""

from __future__ import annotations

from ..common.stacks import user_line


class Unplannable(RuntimeError):
    """An operation that the dry run cannot answer. The program may catch it like any other error; the plan knows of it all the same."""

    first: dict | None = None
    backward_line = ""  # of the latest backward pass, which runs on a thread without the program's lines

    def __init__(self, text: str, line: str = ""):
        super().__init__(text)
        Unplannable.first = Unplannable.first or {
            "text": text,
            "line": line or user_line() or Unplannable.backward_line,
        }
