"""What the dry run cannot answer."""

from __future__ import annotations

import dis
import traceback

from ..._file_owner import is_own
from ...common.stacks import user_line


def first_sentence(text: str) -> str:
    """PyTorch's messages about missing kernels list all of its backends; those about a checkpoint all names that do not fit, which are wanted."""
    if "in loading state_dict for" in text:
        return text[:4000]
    return text if len(text) < 600 else (text[:600].rpartition(". ")[0] or text[:600].strip()) + "."


def own_failure(what: str, problem: BaseException) -> str:
    """For what the dry run broke: whoever reads it looks for a mistake of the program's otherwise."""
    return f"{what}: this is a failure of Faultline's dry run, not of the program, which may well run on a GPU ({type(problem).__name__}: {first_sentence(str(problem))})"


_MEANT = "_faultline_meant"
_MISTAKES = (
    AttributeError,
    NameError,
    KeyError,
    AssertionError,
    RecursionError,
)  # the dry run raises none of them on purpose


def meant(problem: BaseException) -> BaseException:
    """An error that the program would have without the dry run, too, and that the dry run raises in the place of who would."""
    setattr(problem, _MEANT, True)
    return problem


def is_meant(problem: BaseException) -> bool:
    return hasattr(problem, _MEANT)


def is_own_accident(problem: BaseException) -> bool:
    """Did it come out of the dry run's own code where that neither raises an error nor hands on a call as it was made (`f(*args)`)?"""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or is_meant(problem) or not is_own(trace.tb_frame.f_code.co_filename):
        return False
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] not in _RAISES_OR_HANDS_ON


_RAISES_OR_HANDS_ON = ("RAISE_VARARGS", "RERAISE", "CALL_FUNCTION_EX")


class Unplannable(RuntimeError):
    """An operation that the dry run cannot answer. The program may catch it like any other error; the plan knows of it all the same."""

    first: dict | None = None
    backward_line = ""  # of the latest backward pass, which runs on a thread without the program's lines

    def __init__(self, text: str, line: str = "", gpus: int = 0):
        super().__init__(text)
        Unplannable.first = Unplannable.first or {
            "text": text,
            "line": line or user_line() or Unplannable.backward_line,
            "gpus": gpus,  # that the program uses, where those are more than the plan has
        }


def of_own_code(problem: BaseException, trace) -> str:
    """In words, where code of the dry run failed that does not fail on purpose; empty: it did not."""
    frames = traceback.extract_tb(trace)
    if is_meant(problem) or not isinstance(problem, Exception):
        return ""
    if frames and is_own(frames[-1].filename) and isinstance(problem, _MISTAKES):
        return own_failure(f"{frames[-1].name}() failed", problem)
    return ""
