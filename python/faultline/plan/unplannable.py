"""What the dry run cannot answer."""

from __future__ import annotations

from ..common.stacks import user_line


_NO_FORK = "autograd's threading in combination with fork"


def of_lost_threads(problem: BaseException) -> str:
    """A limit of a dry run in a copy of the process, in words; empty: it is something else."""
    if not isinstance(problem, RuntimeError) or _NO_FORK not in str(problem):
        return ""
    return "PyTorch ran a backward pass for real in this process before, and its threads do not come along into the copy that a dry run is: plan first, or in a process of its own"


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
