"""Out-of-memory errors that a test asks for: those that end in a pytest.raises or in unittest's assertRaises. All others that do not end the test were swallowed on the way."""

from __future__ import annotations

import unittest.case

from ._file_owner import is_library, is_own
from .run.exceptions import kind_of


def hear_expected(places: list) -> None:
    """In the copy of the process: adds (file, line) of each. No exception is kept: its frames would hold tensors."""
    from _pytest._code import ExceptionInfo

    fill, make = ExceptionInfo.fill_unfilled, ExceptionInfo.from_exc_info.__func__
    leave = unittest.case._AssertRaisesContext.__exit__

    def fill_unfilled(info, exc_info):
        _note(exc_info[1], places)
        return fill(info, exc_info)

    def from_exc_info(kind, exc_info, *arguments, **named):  # pytest.raises(error, function)
        _note(exc_info[1], places)
        return make(kind, exc_info, *arguments, **named)

    def from_exception(kind, exception, *arguments, **named):
        return kind.from_exc_info((type(exception), exception, exception.__traceback__), *arguments, **named)

    def left(context, kind, problem, trace):
        is_expected = leave(context, kind, problem, trace)
        if is_expected:
            _note(problem, places, trace)
        return is_expected

    ExceptionInfo.fill_unfilled = fill_unfilled
    ExceptionInfo.from_exc_info = classmethod(from_exc_info)
    if hasattr(ExceptionInfo, "from_exception"):
        ExceptionInfo.from_exception = classmethod(from_exception)
    unittest.case._AssertRaisesContext.__exit__ = left


def _note(problem: BaseException | None, places: list, trace=None) -> None:
    """With those that it came of."""
    met = set()
    while problem is not None and id(problem) not in met:
        met.add(id(problem))
        if kind_of(problem) == "memory" and not getattr(problem, "_faultline_expected", False):
            problem._faultline_expected = True
            places.append(_place_of(trace or problem.__traceback__))
        problem, trace = problem.__cause__ or problem.__context__, None


def _place_of(trace) -> tuple[str, int]:
    """The innermost line of the program's: of those that the error went through, else of those that called them (pytest.raises(error, function))."""
    place, frame = ("", 0), trace.tb_frame if trace is not None else None
    while trace is not None:
        if _is_of_program(trace.tb_frame):
            place = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    while not place[0] and frame is not None:
        if _is_of_program(frame):
            place = (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return place


def _is_of_program(frame) -> bool:
    return not is_library(frame.f_code.co_filename) and not is_own(frame.f_code.co_filename)
