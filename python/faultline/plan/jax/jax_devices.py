"""What JAX tells the program of its devices: the planned GPU, and the CPU beside it.

JAX runs on the CPU here, with two devices: the first is in the GPU's place, the last is the CPU that a program can ask for by name. The program, and the libraries it uses, find a GPU of the
planned name on the platform "gpu"; JAX's own code finds the CPU that it runs on.
"""

from __future__ import annotations

import functools
import os
import sys

_GPU_NAMES = ("gpu", "cuda")


class Devices:
    def __init__(self, session):
        import jax
        from jax._src import xla_bridge

        self._session, self._bridge = session, xla_bridge
        self._own_code = os.path.join(os.path.dirname(jax.__file__), "")
        self._list = None
        self.only_cpu = False  # the program asked for the CPU alone

    def install(self) -> None:
        import jax

        chosen = (self._session.options.get("jax_platforms") or "").split(",")
        self.only_cpu = chosen == ["cpu"] or os.environ.get("CUDA_VISIBLE_DEVICES") == "-1"
        try:
            jax.config.update("jax_platforms", "cpu")
            jax.config.update("jax_num_cpu_devices", 2)
        except (RuntimeError, ValueError, AttributeError):
            pass  # it has as many as the program's flags say: then the CPU by name is the GPU's place as well
        self._hear_choices(jax)
        self._answer_lists(jax)
        self._answer_questions()

    def _hear_choices(self, jax) -> None:
        """jax.config.update("jax_platforms", …): the CPU alone is a choice, a GPU is what there is."""
        kind = type(jax.config)
        update = kind.update

        def heard(config, name, value):
            if name in ("jax_platforms", "jax_platform_name"):
                self.only_cpu = value == "cpu"
            else:
                update(config, name, value)

        kind.update = heard

    def _all(self):
        if self._list is None:
            self._list = list(self._bridge.get_backend("cpu").devices())
        return self._list

    def gpu(self):
        return self._all()[0]

    def is_planned(self, devices) -> bool:
        """Are they all in the GPU's place?"""
        if self.only_cpu:
            return False
        first = self.gpu()
        return all(device is first for device in devices)

    def living_arrays(self) -> list:
        return self._bridge.get_backend("cpu").live_arrays() if self._bridge._backends else []

    def _answer_lists(self, jax) -> None:
        bridge = self._bridge

        def listed(backend=None):
            everything = self._all()
            if len(everything) < 2 or self.only_cpu:
                return everything[:1]
            return everything[-1:] if backend == "cpu" else everything[:1]

        def around(name, answer):
            before = getattr(bridge, name)

            @functools.wraps(before)
            def faultline(*arguments, **named):
                return answer(before, *arguments, **named)

            setattr(bridge, name, faultline)
            if getattr(jax, name, None) is before:
                setattr(jax, name, faultline)

        def known(backend) -> bool:
            return backend is None or backend == "cpu" or backend in _GPU_NAMES

        around("devices", lambda before, backend=None: listed(backend) if known(backend) else before(backend))
        around(
            "local_devices",
            lambda before, process_index=None, backend=None, host_id=None: (
                listed(backend) if known(backend) else before(process_index, backend)
            ),
        )
        around("device_count", lambda before, backend=None: len(listed(backend)) if known(backend) else before(backend))
        around(
            "local_device_count",
            lambda before, backend=None: len(listed(backend)) if known(backend) else before(backend),
        )
        around("default_backend", lambda before: before() if self._asked_by_jax() or self.only_cpu else "gpu")
        around(
            "get_backend",
            lambda before, platform=None: before("cpu") if platform in _GPU_NAMES else before(platform),
        )

    def _asked_by_jax(self) -> bool:
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename.startswith(os.path.dirname(__file__)):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self._own_code)

    def _answer_questions(self) -> None:
        from jaxlib import xla_client

        kind, session = xla_client.Device, self._session

        def as_planned(name: str, planned) -> None:
            before = getattr(kind, name)

            def asked(device):
                if self.only_cpu or device is not self.gpu() or self._asked_by_jax():
                    return before.__get__(device)
                return planned

            setattr(kind, name, property(asked))

        as_planned("platform", "gpu")
        as_planned("device_kind", session.gpu.name)
        before_stats = kind.memory_stats

        def memory_stats(device):
            if self.only_cpu or device is not self.gpu() or session.closed:
                return before_stats(device)
            session.asked_free()
            session.open()
            stats = session.device.stats()
            return {
                "num_allocs": stats.allocations,
                "bytes_in_use": stats.allocated_bytes,
                "peak_bytes_in_use": stats.peak_allocated_bytes,
                "bytes_limit": stats.limit_bytes,
                "bytes_reserved": 0,
                "peak_bytes_reserved": 0,
                "largest_free_block_bytes": stats.inactive_split_bytes,
                "pool_bytes": stats.reserved_bytes,
                "peak_pool_bytes": stats.peak_reserved_bytes,
            }

        kind.memory_stats = memory_stats
        for name in ("__repr__", "__str__"):
            self._show(kind, name)

    def _show(self, kind, name: str) -> None:
        before = getattr(kind, name)

        def shown(device):
            text = before(device)
            if self.only_cpu or device is not self.gpu() or self._asked_by_jax():
                return text
            return "CudaDevice(id=0)" if name == "__repr__" else "cuda:0"

        setattr(kind, name, shown)
