"""Faultline finds the line behind a GPU memory fault.

faultline.plan(function, gpu="T4") tells whether what the function does fits on that GPU, without one. The command line tool is `faultline`.
"""

from __future__ import annotations

__all__ = ["plan", "Plan"]


def __getattr__(name: str):
    if name in __all__:
        from . import api

        return getattr(api, name)
    raise AttributeError(f"module 'faultline' has no attribute {name!r}")
