"""What a release of PyTorch does on the GPU where the dry run answers in its place: the choice of attention kernels, libraries' workspaces, the blocks
that kernels take for themselves. It is read in the sources of 2.1 to 2.13, and for 2.14 and 2.15 in those of the
development between them, of which no release was told apart; newer ones are taken to do as the newest does.

What PyTorch's own Python code and its composite operations do is the installed release's by itself and stands nowhere here. The version of cuDNN
matters as much as PyTorch's: a build with CUDA tells its own, for one without it is that of the wheels on PyPI.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, replace

import torch

# Of the wheels on PyPI: since which release, with which CUDA, with which cuDNN (as cudnnGetVersion() writes it).
_WHEELS = (
    ((2, 15), (13, 2), 92600),
    ((2, 14), (13, 0), 92400),
    ((2, 12), (13, 0), 92000),
    ((2, 11), (13, 0), 91900),
    ((2, 8), (12, 8), 91002),
    ((2, 7), (12, 6), 90501),
    ((2, 5), (12, 4), 90100),
    ((2, 4), (12, 1), 90100),
    ((0, 0), (12, 1), 8902),
)
NEWEST = (2, 15)  # that is known
# Of the others, where it differs.
_CUDNN_WITH = {
    ((2, 6), (12, 6)): 90501,
    ((2, 7), (12, 8)): 90701,
    ((2, 7), (11, 8)): 90100,
    ((2, 9), (13, 0)): 91300,
    ((2, 10), (13, 0)): 91501,
    ((2, 11), (12, 6)): 91002,
    ((2, 11), (12, 9)): 91701,
    ((2, 12), (12, 6)): 91002,
    ((2, 13), (12, 6)): 91002,
}


def _numbers(text: str, count: int) -> tuple[int, ...]:
    return tuple([*map(int, re.findall(r"\d+", text.split("+")[0])), *[0] * count][:count])


@dataclass(frozen=True)
class Release:
    version: tuple[int, int, int]
    cuda: tuple[int, int]
    cudnn: int
    tells_random_state: bool | None = (
        None  # what the installed one's flash attention returns; None: known by the version
    )

    @classmethod
    def of(cls, version: str, cuda: str | None = None, cudnn: int | None = None) -> Release:
        """By PyTorch's version, "2.11.0" or "2.11.0+cu130", and where they are known those of CUDA and cuDNN."""
        numbers = _numbers(version, 3)
        _, usual_cuda, usual_cudnn = next(wheel for wheel in _WHEELS if numbers[:2] >= wheel[0])
        if not cuda and (named := re.search(r"\+cu(\d+)(\d)", version)):
            cuda = f"{named[1]}.{named[2]}"
        toolkit = _numbers(cuda, 2) if cuda else usual_cuda
        return cls(numbers, toolkit, cudnn or _CUDNN_WITH.get((numbers[:2], toolkit), usual_cudnn))

    def since(self, minor: int) -> bool:
        return self.version[:2] >= (2, minor)

    @property
    def name(self) -> str:
        return ".".join(map(str, self.version))

    # --- scaled_dot_product_attention

    def attention_order(
        self, capability: tuple[int, int], q: torch.Tensor, k: torch.Tensor, needs_grad: bool
    ) -> tuple[str, ...]:
        """Which kernels are tried, in this order."""
        if not self.since(2):
            return (
                ("efficient", "flash", "math")
                if self._efficient_first(q, k, needs_grad)
                else ("flash", "efficient", "math")
            )
        if not self.since(5):
            return "flash", "efficient", "math"  # cuDNN's takes part only where TORCH_CUDNN_SDPA_ENABLED asks for it
        if self.version == (2, 5, 0) and capability[0] < 9:
            return "flash", "cudnn", "efficient", "math"
        return (
            ("cudnn", "flash", "efficient", "math")
            if self._cudnn_first(capability)
            else ("flash", "efficient", "math", "cudnn")
        )

    @staticmethod
    def _efficient_first(q: torch.Tensor, k: torch.Tensor, needs_grad: bool) -> bool:
        if q.dim() != 4 or q.size(0) == 0:
            return False
        parts, length = q.size(0) * q.size(1), q.size(2)
        if needs_grad:
            return 6 * parts > length
        return parts < 60 and parts * (length // 64) // 2 >= parts or max(q.size(3), k.size(3)) == 128

    def _cudnn_first(self, capability: tuple[int, int]) -> bool:
        major, minor = capability
        if self.version == (2, 5, 0):
            return major >= 9
        if not self.since(9) or major not in (9, 10):
            return False
        if not self.since(10):
            return minor == 0 and self.cudnn >= 90900 and _switched("TORCH_CUDNN_SDPA_PREFERRED") is not False
        any_minor = self.since(13) and self.cuda >= (13, 0)
        return (any_minor or minor in (0, 3)) and self.cudnn > 91500 and not _switched("TORCH_CUDNN_SDPA_DEPRIORITIZED")

    @property
    def attention_capabilities(self) -> tuple[int, int]:
        """The newest GPUs for which the fused kernels were built."""
        return (12, 1) if self.since(8) else (12, 0) if self.since(7) else (9, 0)

    @property
    def flash_is_first_version(self) -> bool:
        """FlashAttention 1: from compute capability 7.5 on, heads of up to 128, a multiple of 8."""
        return not self.since(2)

    def flash_trains(self, capability: tuple[int, int], d: int, dropout: float) -> bool:
        """GPUs with little shared memory have no backward pass for wide heads."""
        if not (
            (8, 6) <= capability <= (8, 9) or self.since(7) and (12, 0) <= capability <= self.attention_capabilities
        ):
            return True
        if not self.since(2):
            return d <= 64
        if not self.since(3):
            return d <= 192
        return not (192 < d <= 224 or d > 224 and dropout > 0)

    def cudnn_head_limit(self, capability: tuple[int, int], d: int, dv: int) -> int:
        if self.since(13):
            if capability != (9, 0) and capability[0] != 10:
                return 128
            return 256 if self.cudnn_wide_heads else 192 if self.cudnn >= 91100 and (d, dv) == (192, 128) else 128
        if capability == (9, 0) and self.cudnn >= (91000 if self.since(9) else 90501) and self.since(8):
            return 256
        return 192 if self.since(11) and capability[0] == 10 and self.cudnn >= 91100 and (d, dv) == (192, 128) else 128

    @property
    def cudnn_wide_heads(self) -> bool:
        """From 2.13 on heads above 128 ask for more than any wheel of 2.13 has."""
        return self.since(13) and self.cudnn > 92200

    def cudnn_drops_out(self, dropout: float) -> bool:
        if dropout > 0 and self.since(9) and 91100 < self.cudnn < 91400:
            return False
        return not self.since(12) or dropout * 16 == int(dropout * 16)

    def cudnn_takes_lengths(self, queries: int, keys: int, dropout: float) -> bool:
        if not self.since(6):
            return True
        return keys != 1 and (queries != 1 or self.since(9) and dropout == 0.0)

    @property
    def log_sums_without_grad_mode(self) -> bool:
        """What backward needs is kept for inputs that require gradients, even under no_grad()."""
        return not self.since(4)

    @property
    def flash_seed_on_gpu(self) -> bool:
        return self.since(7) if self.tells_random_state is None else self.tells_random_state

    @property
    def flash_slots_per_multiprocessor(self) -> int:
        return 2 if self.since(5) else 1

    def flash_rounded_head(self, d: int) -> int:
        d = -(-d // 32) * 32
        if not self.since(7):
            return d
        if not self.since(11):
            return d if d < 224 else 256
        return d if d <= 128 else -(-d // 64) * 64

    @property
    def efficient_splits_all_keys(self) -> bool:
        """The keys' gradients are summed in as many copies as there are blocks of keys, each of the full length."""
        return not self.since(4)

    # --- matrix products

    def cublas_workspace_bytes(self, capability: tuple[int, int]) -> int:
        if not self.since(12):
            large = capability == (9, 0)
        else:
            large = capability[0] in ((9, 10, 11, 12) if self.since(14) else (9, 10, 12))
        return 32 << 20 if large else (8 << 20) + (128 << 10)

    @property
    def lt_workspace(self) -> str:
        """cublasLt's: taken for each "call", "kept" for each thread and stream, or "shared" with cuBLAS's."""
        if not self.since(8):
            return "call"
        shared = _switched("TORCH_CUBLASLT_UNIFIED_WORKSPACE")
        if shared is None:
            shared = self.since(12)
        return "shared" if shared else "kept" if self.since(9) else "call"

    # --- other kernels

    @property
    def bce_with_logits_tensors(self) -> tuple[int, int]:
        """Of the loss's size, the loss among them: how many are alive at once, and how many when it is averaged."""
        return (2, 2) if self.since(4) else (2, 1) if self.since(3) else (5, 2)

    @property
    def layer_norm_sums_columns(self) -> bool:
        return self.since(8)

    @property
    def embedding_adds_atomically(self) -> bool:
        return self.since(11)

    @property
    def foreach_norm_in_one(self) -> bool:
        """All norms are views of one tensor."""
        return not self.since(3)

    @property
    def sum_vector_of_halves(self) -> int:
        return 8 if self.since(10) else 4

    @property
    def vectors_from_128(self) -> bool:
        """Reductions of exactly 128 elements are read in vectors already."""
        return self.since(10)

    @property
    def variance_in_vectors(self) -> bool:
        return self.since(7)

    @property
    def group_norm_in_float(self) -> bool:
        """Mean and scale of half inputs are made in float first."""
        return self.since(13)

    @property
    def count_nonzero_copies_bools(self) -> bool:
        return not self.since(5)

    @property
    def topk_digit_sums(self) -> bool:
        """Several blocks share sums per digit; before they shared a counter."""
        return self.since(10)

    @property
    def topk_state_twice(self) -> bool:
        return self.since(7)

    @property
    def bias_in_rows(self) -> bool:
        """A bias of shape (1, n) goes into the product's launch, too."""
        return self.since(10)

    def fuses_bias(self, left: torch.Tensor, right: torch.Tensor) -> bool:
        """Whether cublasLt is asked for operands of these shapes."""
        if min(right.shape, default=0) <= 1 or self.version[:2] == (2, 10) and min(left.shape) <= 1:
            return False
        if self.since(4):
            return True
        dense = all(
            t.stride(0) == 1 and t.stride(1) == t.size(0) or t.stride(1) == 1 and t.stride(0) == t.size(1)
            for t in (left, right)
        )
        return max(*left.shape, *right.shape) < 65535 * 32 and (dense or right.element_size() > 2)

    @property
    def conv3d_of_halves_is_slow(self) -> bool:
        """A cuDNN was avoided whose 3d convolutions of half types were wrong: PyTorch's own kernel takes their place."""
        return self.version[:2] == (2, 9) and self.cudnn >= 90800 and (self.version[2] == 0 or self.cudnn < 91500)

    # --- the allocator's settings

    @property
    def settings_variables(self) -> tuple[str, ...]:
        return ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF") if self.since(10) else ("PYTORCH_CUDA_ALLOC_CONF",)


def _switched(variable: str) -> bool | None:
    """As c10::utils::check_env() reads it; None where it is not set."""
    return {"1": True, "0": False}.get(os.environ.get(variable, ""))


def installed() -> Release:
    """The one that runs here. FAULTLINE_PLAN_RELEASE names another for what is decided in its place, as for comparing with what another recorded."""
    assumed = os.environ.get("FAULTLINE_PLAN_RELEASE")
    if assumed:
        return Release.of(assumed)
    found = Release.of(
        str(torch.__version__) if is_numbered() else ".".join(map(str, NEWEST)),
        torch.version.cuda,
        _cudnn_version() if torch.version.cuda else None,
    )
    returned = torch.ops.aten._scaled_dot_product_flash_attention.default._schema.returns
    return replace(found, tells_random_state=any(value.name == "rng_state" for value in returned))


def _cudnn_version() -> int | None:
    """As torch.backends.cudnn.version() has it, which asks every GPU first: that is not for a dry run, and fails in a process that was forked beside CUDA."""
    library = getattr(torch._C, "_cudnn", None)
    if library is None:
        return None
    major, minor, patch = library.getRuntimeVersion()
    return (major * 1000 if major < 9 else major * 10000) + minor * 100 + patch


def is_numbered() -> bool:
    """Builds of one's own may be called anything."""
    return _numbers(str(torch.__version__), 2) != (0, 0)


def unknown() -> str:
    """What is to be said of a release that is not among those that are known."""
    version = str(torch.__version__)
    newest = ".".join(map(str, NEWEST))
    if not is_numbered():
        return f"this PyTorch calls itself {version!r}, which is no release: it was planned as {newest}, the newest that is known"
    if _numbers(version, 2) > NEWEST:
        return f"PyTorch {version} is newer than {newest}, the newest that is known: it was planned as that"
    return ""


_now: Release | None = None


def now() -> Release:
    """The one that is planned for."""
    global _now
    if _now is None:
        _now = installed()
    return _now


@contextlib.contextmanager
def assumed(release: Release | str):
    """Plans for another release inside."""
    global _now
    before, _now = _now, Release.of(release) if isinstance(release, str) else release
    try:
        yield _now
    finally:
        _now = before
