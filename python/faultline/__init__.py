"""Faultline finds the line behind a GPU memory fault.

faultline.plan(function, gpu="T4") tells whether what the function does fits on that GPU, without one. faultline.explain(exception) tells what an error, a file or a text means.
In a notebook `%load_ext faultline`, then `%%faultline run`, `plan --gpu T4` or `watch` above a cell. The command line tool is `faultline`.
"""

from __future__ import annotations

__all__ = ["plan", "Plan", "explain", "Report"]
_PLACES = {"plan": "api", "Plan": "api", "explain": "explanation", "Report": "report"}


def __getattr__(name: str):
    if name in _PLACES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    if name == "__version__":
        from ._version import version

        return version()
    raise AttributeError(f"module 'faultline' has no attribute {name!r}")


def load_ipython_extension(shell) -> None:
    from .notebook import extension

    extension.load(shell)


def unload_ipython_extension(shell) -> None:
    from .notebook import extension

    extension.unload(shell)
