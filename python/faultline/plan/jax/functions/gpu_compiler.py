"""How much a compiled function takes beside its arguments and results: XLA preallocates its temporaries in one piece, and knows how large it is once it has compiled.

Where XLA's CUDA plugin is installed it compiles for a GPU that is not there, from a description of it; then the answer is that of the compiler which the GPU's machine would use, of the same
release. Its search for the fastest kernels needs a GPU and is left out. Else the compiler for this machine's CPU is asked, which fuses otherwise; the plan says so.
"""

from __future__ import annotations

import importlib.metadata
import os
import re

# By compute capability: CUDA's own tables of what a multiprocessor has (cores for float32, shared memory in KiB), and of a usual card clock (GHz) and bandwidth (GB/s), which the
# compiler weighs fusions with.
_GENERATIONS = {
    (6, 0): (64, 64, 1.48, 732),
    (6, 1): (128, 96, 1.58, 484),
    (7, 0): (64, 96, 1.53, 900),
    (7, 5): (64, 64, 1.59, 320),
    (8, 0): (64, 164, 1.41, 2039),
    (8, 6): (128, 100, 1.70, 768),
    (8, 9): (128, 100, 2.50, 864),
    (9, 0): (128, 228, 1.98, 3350),
    (10, 0): (128, 228, 1.92, 8000),
    (12, 0): (128, 100, 2.41, 1792),
}
# Of single cards, by the word that stands in their name, the longest that does. NVIDIA's data sheets, GB/s. The compiler's choices depend on it: an H200 taken for an H100 gets other temporaries.
_BANDWIDTHS = (
    ("H200", 4800),
    ("GH200", 4000),
    ("H100 NVL", 3900),
    ("H100 PCIe", 2000),
    ("H20", 4000),
    ("A100-SXM4-40", 1555),
    ("A100-PCIE-40", 1555),
    ("A100 80GB PCIe", 1935),
    ("A100-SXM4-80", 2039),
    ("L40", 864),
    ("L4", 300),
    ("A10", 600),
    ("A40", 696),
    ("A6000", 768),
    ("A5000", 768),
    ("A4000", 448),
    ("6000 Ada", 960),
    ("4090", 1008),
    ("4080", 717),
    ("4070", 504),
    ("4060", 272),
    ("3090", 936),
    ("3080", 760),
    ("3070", 448),
    ("3060", 360),
    ("2080 Ti", 616),
    ("5090", 1792),
    ("5080", 960),
    ("V100", 900),
    ("P100", 732),
    ("T4", 320),
)
OPTIONS = {"xla_gpu_autotune_level": 0}
_WITH_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}


def plugin() -> str:
    """The CUDA plugin that is installed, "jax-cuda13-plugin 0.11.2"; empty: none."""
    for name in ("jax-cuda13-plugin", "jax-cuda12-plugin"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return ""


def cudnn_version() -> tuple[int, int, int]:
    for name in ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"):
        try:
            found = re.match(r"(\d+)\.(\d+)\.(\d+)", importlib.metadata.version(name))
            if found:
                return tuple(int(n) for n in found.groups())
        except importlib.metadata.PackageNotFoundError:
            continue
    return (9, 8, 0)


def bandwidth_of(name: str) -> int:
    """GB/s; 0: the card is not in the table. A word is whole: an A100 is no A10, a GH200 no H200."""
    fitting = [row for row in _BANDWIDTHS if re.search(rf"(?<![A-Za-z0-9]){re.escape(row[0])}(?!\d)", name)]
    return max(fitting, key=lambda row: len(row[0]), default=("", 0))[1]


def description_of(gpu) -> str:
    """The planned GPU in the words of XLA's target configuration."""
    capability = min(
        _GENERATIONS, key=lambda c: (c > gpu.compute_capability, abs(c[0] - gpu.major), abs(c[1] - gpu.minor))
    )
    cores, shared_kib, clock, bandwidth = _GENERATIONS[capability]
    bandwidth = bandwidth_of(gpu.name) or bandwidth
    # From 9.0 on kernels are compiled for the very generation, with what only it has.
    extension = "feature_extension: ACCELERATED_FEATURES" if gpu.major >= 9 else ""
    cudnn = cudnn_version()
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: {gpu.warp_size}
  shared_memory_per_block: {48 << 10}
  shared_memory_per_core: {shared_kib << 10}
  threads_per_core_limit: {gpu.max_threads_per_multi_processor}
  core_count: {gpu.multi_processor_count}
  fpus_per_core: {cores}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {bandwidth * 1000**3}
  l2_cache_size: {gpu.l2_cache_size}
  clock_rate_ghz: {clock}
  device_memory_size: {gpu.capacity_bytes}
  shared_memory_per_block_optin: {gpu.shared_memory_per_block_optin}
  cuda_compute_capability {{ major: {gpu.major} minor: {gpu.minor} {extension} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  name: "{gpu.name}"
}}
platform_name: "CUDA"
dnn_version_info {{ major: {cudnn[0]} minor: {cudnn[1]} patch: {cudnn[2]} }}
device_description_str: "{gpu.name}"
"""


class GpuCompiler:
    """For the planned GPU, without one. why_not: why the CPU's compiler has to do; empty: it does not have to."""

    def __init__(self, gpu):
        self.why_not, self._device = "", None
        if not plugin():
            self.why_not = "JAX's CUDA plugin is not installed here"
            return
        os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # it would look for a driver
        try:
            from jax.experimental import topologies

            topology = topologies.get_topology_desc(
                topology_name="faultline", platform="cuda", topology="1x1x1", target_config=description_of(gpu)
            )
            self._device = topology.devices[0]
        except Exception as problem:  # of another release, or of a library that does not load
            self.why_not = f"JAX's CUDA plugin could not compile without a GPU ({_in_words(problem)})"

    def temporary_bytes(self, function, avals, donated: tuple, keep_unused: bool) -> int | None:
        """Of a function of arrays; None: it could not be compiled for the GPU."""
        if self._device is None:
            return None
        import jax
        from jax.sharding import SingleDeviceSharding

        place = SingleDeviceSharding(self._device)
        try:
            lowered = jax.jit(
                function, in_shardings=place, out_shardings=place, donate_argnums=donated, keep_unused=keep_unused
            ).lower(*avals)
            return int(lowered.compile(compiler_options=OPTIONS).memory_analysis().temp_size_in_bytes)
        except Exception as problem:
            self.problem = _in_words(problem)
            return None


def _in_words(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return type(problem).__name__ + (f": {lines[0][:160]}" if lines else "")


def cpu_temporary_bytes(function, avals, donated: tuple, keep_unused: bool) -> int:
    """With the barriers of jax.checkpoint left in, which the compiler for the CPU takes out before it looks for common parts."""
    import jax

    lowered = jax.jit(function, donate_argnums=donated, keep_unused=keep_unused).lower(*avals)
    try:
        analysis = lowered.compile(compiler_options=_WITH_BARRIERS).memory_analysis()
    except Exception:  # a release whose compiler has another word for it, or cannot make code of them
        analysis = lowered.compile().memory_analysis()
    return int(analysis.temp_size_in_bytes) if analysis is not None else 0
