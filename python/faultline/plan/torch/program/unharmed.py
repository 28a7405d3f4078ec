"""What only watches the program must not break it: a hook of the dry run that fails is left out, and the report says so."""

from __future__ import annotations

import functools

from ...session.session import current
from ...session.unplannable import Unplannable
from ..release.older_torch import OutOfMemoryError


def unharmed(watches):
    """Of a function that is called beside what the program does, and gives nothing back to it."""

    @functools.wraps(watches)
    def faultline(*args, **kwargs):
        try:
            return watches(*args, **kwargs)
        except (OutOfMemoryError, Unplannable):
            raise
        except Exception as problem:
            tell_left_out(watches.__name__, problem)
            return None

    return faultline


def tell_left_out(name: str, problem: Exception) -> None:
    session = current()
    if session is not None:
        session.notes.add(
            "skipped",
            f"Faultline could not follow what the program does here, and left it out (in {name}: {type(problem).__name__}: {problem})",
            group=f"unharmed {name}",
        )
