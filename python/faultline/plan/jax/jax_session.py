"""The dry run of a JAX program in this process."""

from __future__ import annotations

import os

from ...common.stacks import user_line
from ..session.pool_session import PoolSession

_SETTINGS = (
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
)
_OLD_SHARE = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_MEND = "give XLA_CLIENT_MEM_FRACTION alone, a number such as 0.9"


class JaxSession(PoolSession):
    framework, title, packages = "jax", "JAX", ("jax",)

    def __init__(self, options: dict):
        super().__init__(options)
        from ...common.holdings import Holdings

        self.arrays = Holdings(self)
        self.all_real = bool(options.get("real"))

    def install(self) -> None:
        from . import array_transfers, executions, jax_devices, reads, unseen_arrays
        from .remedies import jax_remedies

        self.devices = jax_devices.Devices(self)
        self.devices.install()
        self.executions = executions.Executions(self)
        self.executions.install()
        self.remedies = jax_remedies.JaxRemedies(self)
        self.remedies.install()
        array_transfers.install(self)
        reads.install(self)
        self.unseen = unseen_arrays.UnseenArrays(self)
        super().install()

    def step(self, name: str) -> None:
        self.unseen.look()
        super().step(name)

    def tick(self) -> None:
        super().tick()
        self.unseen.tick()

    def settings(self) -> str:
        told = {name: os.environ[name] for name in _SETTINGS if os.environ.get(name)}
        if refused := self._refused():
            self.refuse(
                f"JAX refuses its settings ({refused}), begins without its CUDA plugin and computes on the CPU: {_MEND}"
            )
        if "XLA_PYTHON_CLIENT_PREALLOCATE" in told:  # as JAX reads it
            is_off = told["XLA_PYTHON_CLIENT_PREALLOCATE"] in ("false", "False", "0")
            told["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false" if is_off else "true"
        allocator = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
        if allocator in ("platform", "cuda_async", "vmm"):
            # No pool stands between the program and the driver: as much as there is, taken when it is asked for.
            self.notes.add(
                "instead",
                f"XLA_PYTHON_CLIENT_ALLOCATOR={allocator} has no model: memory was counted as if a pool of all there is grew with the program, and what the driver's own pieces waste is not known",
                "",
                verdict=f"with a pool instead of the {allocator} allocator",
            )
            return "XLA_PYTHON_CLIENT_PREALLOCATE=false,XLA_CLIENT_MEM_FRACTION=1"
        if self.options.get("overcommit") and self.gpu.name == "GPU of any size":
            told["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # what it takes is asked for, not three quarters of nothing
        return ",".join(f"{name}={value}" for name, value in told.items())

    def open(self) -> None:
        if self.device is None:
            super().open()
            if os.environ.get(_OLD_SHARE) and not os.environ.get("XLA_CLIENT_MEM_FRACTION"):
                self.device.property("dry-run.share_setting", _OLD_SHARE)

    def _refused(self) -> str:
        """Why JAX's CUDA plugin would not begin with the environment as it is; empty: it would."""
        from jaxlib import xla_client

        try:
            getattr(xla_client, "generate_pjrt_gpu_plugin_options", dict)()
        except ValueError as problem:
            return f"ValueError: {problem}".rstrip(".")
        return ""

    def is_out_of_memory(self, problem: BaseException) -> bool:
        return isinstance(problem, RuntimeError) and str(problem).startswith("RESOURCE_EXHAUSTED")

    def out_of_memory(self, size_bytes: int, when: str = ""):
        """What JAX raises."""
        import jax

        kind = getattr(jax.errors, "JaxRuntimeError", RuntimeError)
        return kind(
            "RESOURCE_EXHAUSTED: "
            + (
                f"Failed to load in-memory CUBIN: CUDA_ERROR_OUT_OF_MEMORY: out of memory, {when} ({in_words(size_bytes)}, beside the pool)."
                if when
                else f"Out of memory while trying to allocate {in_words(size_bytes)} with allocator GPU_0_bfc on device 0."
            )
            + " (A dry run by Faultline: no GPU was used.)"
        )

    def asked_free(self) -> None:
        self.asked_free_line = self.asked_free_line or user_line()

    def applied(self) -> dict[str, str]:
        return self.remedies.all_applied()

    def offers(self) -> list[dict]:
        return self.executions.offers()

    def tell_at_end(self) -> None:
        self.executions.tell_at_end()
        self.unseen.tell_at_end()


def in_words(size_bytes: int) -> str:
    """As XLA writes it: 3.37GiB."""
    if size_bytes < 1024:
        return f"{size_bytes}B"
    value, unit = float(size_bytes), "B"
    for unit in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        value /= 1024
        if value < 1024:
            break
    return f"{value:.1f}{unit}" if unit == "KiB" else f"{value:.2f}{unit}"
