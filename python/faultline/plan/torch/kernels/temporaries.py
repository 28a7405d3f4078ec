"""What an operation on the GPU takes from the caching allocator beside its results.

The dry run sees each ATen operation with its arguments and results and asks here for the blocks in between: staging
buffers of reductions, sort space, cuDNN workspaces, copies that a kernel makes for itself. The models stand
beside it, one module per family, and follow PyTorch's launch code, release by release (releases.py); they hold for
other GPUs by their properties (multiprocessors, threads, compute capability). Where a closed library chooses (cuDNN), the model is an
estimate fitted to measurements on an H200 and says so.

  steps(...)          None for most operations (one dictionary lookup), otherwise the list that steps.py defines
  extra_outputs(...)  the true byte sizes, by position, of auxiliary results whose meta kernel reports them wrong (0: not on the GPU)
  kept_storage(...)   the byte sizes, by position, of results whose storage is larger than their shape says
  persistent(...)     workspaces that a library takes once and keeps; the key says when it is the same one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import (  # noqa: F401 (each adds its models)
    attention,
    blas,
    convolutions,
    copies,
    indexing,
    linalg,
    losses,
    norms,
    recurrent,
    reductions,
    scans,
    sorting,
)
from .steps import OUT, Call, models, output_models, storage_models

__all__ = ["OUT", "steps", "extra_outputs", "kept_storage", "persistent"]

_missing = object()
_models: dict[Any, Any] = {}
_output_models: dict[Any, Any] = {}
_storage_models: dict[Any, Any] = {}


def _find(func: Any, cache: dict, table: dict) -> Any:
    found = cache.get(func, _missing)
    if found is _missing:
        schema = getattr(func, "_schema", None)
        found = cache[func] = table.get(schema.name) if schema is not None else None
    return found


def steps(func: Any, args: Sequence, kwargs: dict | None, outputs: Sequence, gpu: Any) -> list | None:
    model = _find(func, _models, models)
    if model is None:
        return None
    return model(Call(func, args, kwargs or {}, outputs, gpu))


def extra_outputs(func: Any, args: Sequence, kwargs: dict | None, gpu: Any) -> dict[int, int] | None:
    model = _find(func, _output_models, output_models)
    return model(Call(func, args, kwargs or {}, (), gpu)) if model else None


def kept_storage(func: Any, args: Sequence, kwargs: dict | None, gpu: Any) -> dict[int, int] | None:
    model = _find(func, _storage_models, storage_models)
    return model(Call(func, args, kwargs or {}, (), gpu)) if model else None


def persistent(func: Any, args: Sequence, kwargs: dict | None, gpu: Any) -> list[tuple[str, int]]:
    return blas.workspaces(func, args, kwargs or {}, gpu) if hasattr(func, "_schema") else []
