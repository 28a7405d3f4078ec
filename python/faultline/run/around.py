"""Functions of ours that stand on the program's stack: in tracebacks they leave no sign, and a recorded stack does not take them for the program's."""

import functools

_FILE = "<frozen faultline.run>"


def as_library(function):
    function.__code__ = function.__code__.replace(co_filename=_FILE)
    return function


def around(function, before, after=None):
    """A function that calls this one between two of ours."""

    @functools.wraps(function)
    @as_library
    def faultline(*args, **kwargs):
        before(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except BaseException as problem:
            # The way in through this frame is taken out, and a bare raise does not put it back; before Python 3.11 it does: see strip().
            problem.__traceback__ = problem.__traceback__.tb_next
            raise
        finally:
            if after is not None:
                after()

    return faultline


def strip(problem):
    """Takes these frames out of the traceback of an exception that is about to be printed."""
    seen = set()
    while problem is not None and id(problem) not in seen:
        seen.add(id(problem))
        entry = problem.__traceback__
        while entry is not None and entry.tb_next is not None:
            if entry.tb_next.tb_frame.f_code.co_filename == _FILE:
                entry.tb_next = entry.tb_next.tb_next
            else:
                entry = entry.tb_next
        problem = problem.__cause__ or problem.__context__
