"""Libraries that a program brings and that need a GPU, or are not installed here: what a dry run does in their place.

Where a library is there, its own Python code is run and only what would run on the GPU does nothing (bitsandbytes, triton, the native part of flash_attn). Where it is
missing and the program cannot do without it, a stand-in with the sizes of its documentation takes its place (missing_libraries.py), which the report says with the verdict.
"""

from __future__ import annotations

from . import bitsandbytes, extensions, missing, triton


def install(session) -> None:
    bitsandbytes.install(session)
    triton.install(session)
    extensions.install(session)
    missing.install(session)
