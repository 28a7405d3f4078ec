"""What a program really made, from the shapes of its own tensors: written where TRUTH says, when it is run without Faultline (on the CPU). Under a plan it does nothing."""

import json
import os

DEVICE = os.environ.get("DEVICE", "cuda")
_seen: dict = {"phases": []}


def phase(name: str) -> None:
    """The program says what it does now."""
    if name not in _seen["phases"]:
        _seen["phases"].append(name)


def _bytes(tensors) -> int:
    storages = {t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors if t is not None}
    return sum(storages.values())


def tell(models, optimizers=(), steps: int = 0) -> None:
    path = os.environ.get("TRUTH")
    if not path:
        return
    models = models if isinstance(models, (list, tuple)) else [models]
    optimizers = optimizers if isinstance(optimizers, (list, tuple)) else [optimizers]
    parameters = [p for model in models for p in model.parameters()]
    states = [
        value
        for optimizer in optimizers
        for state in getattr(optimizer, "state", {}).values()
        for value in state.values()
        if hasattr(value, "untyped_storage") and value.dim() > 0
    ]
    _seen.update(
        parameters=_bytes(parameters + [b for model in models for b in model.buffers()]),
        gradients=_bytes(p for p in parameters if p.requires_grad),
        optimizer=_bytes(states),
        steps=steps,
    )
    with open(path, "w", encoding="utf-8") as file:
        json.dump(_seen, file)
