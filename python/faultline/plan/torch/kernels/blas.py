"""Matrix products: copies of operands that cuBLAS cannot read as they lie, and the libraries' own workspaces."""

from __future__ import annotations

import os
from typing import Any

import torch

from ..release import releases
from .steps import Call, Steps, kernel, nbytes

LT_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)

# Operations that ask for a cuBLAS handle, which brings its workspace with it.
GEMMS = frozenset(
    "aten::" + name
    for name in (
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "addmv",
        "mv",
        "dot",
        "vdot",
        "linear",
        "matmul",
        "_addmm_activation",
        "addbmm",
        "addr_",
        "_scaled_mm",
        "linalg_solve_triangular",
        "triangular_solve",
        "_int_mm",
        "einsum",
        "bilinear",
        "_trilinear",
    )
)
FUSED_BIAS = frozenset(("aten::addmm", "aten::_addmm_activation", "aten::linear"))


def cublas_workspace_bytes(gpu: Any) -> int:
    """PyTorch's choice: 32 MiB on Hopper and (from 2.12 on) Blackwell, 8 MiB and 128 KiB elsewhere, or CUBLAS_WORKSPACE_CONFIG (":size:count" in KiB)."""
    chosen = os.environ.get("CUBLAS_WORKSPACE_CONFIG", "")
    parts = chosen.split(":")
    if len(parts) >= 3 and len(parts) % 2 == 1 and all(p.isdigit() for p in parts[1:]):
        return sum(int(size) * int(count) * 1024 for size, count in zip(parts[1::2], parts[2::2]))
    return releases.now().cublas_workspace_bytes(tuple(gpu.compute_capability))


def cublaslt_workspace_bytes() -> int:
    chosen = os.environ.get("CUBLASLT_WORKSPACE_SIZE", "")
    return (int(chosen) if chosen.isdigit() else 1024) * 1024


def _bias_is_fused(name: str, args, kwargs: dict) -> bool:
    """Whether the product and its bias go through cublasLt in one launch."""
    if os.environ.get("DISABLE_ADDMM_CUDA_LT") == "1":
        return False
    if name == "aten::linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        weight = args[1]
        return bias is not None and bias.dtype in LT_DTYPES and weight.dim() == 2 and min(weight.shape) > 1
    bias, left, right = args[:3]
    release = releases.now()
    if (
        kwargs.get("beta", 1) != 1
        or right.dtype not in LT_DTYPES
        or left.shape[0] == 0
        or left.shape[1] == 0
        or not release.fuses_bias(left, right)
    ):
        return False
    wide = [size for size in bias.shape if size != 1]
    fits = (
        bias.is_contiguous()
        and bias.dim() > 0
        and (bias.dim() == 1 or release.bias_in_rows and len(wide) == 1)
        and bias.shape[-1] == right.shape[1]
    )
    return fits or release.bias_in_rows and name == "aten::_addmm_activation" and bias.dim() == 2


def workspaces(func: Any, args, kwargs: dict, gpu: Any) -> list[tuple[str, int]]:
    """cuBLAS keeps one workspace per handle, that is per thread, and stream: autograd's thread has its own, so the caller
    adds the thread and the stream to the key."""
    name = func._schema.name
    if name not in GEMMS:
        return []
    found = [("cublas", cublas_workspace_bytes(gpu))]
    if releases.now().lt_workspace == "kept" and name in FUSED_BIAS and _bias_is_fused(name, args, kwargs):
        found.append(("cublaslt", cublaslt_workspace_bytes()))
    return found


def _readable(tensor: torch.Tensor) -> bool:
    """Whether cuBLAS can address the last two dimensions: one of them is dense and the other does not overlap it."""
    rows, columns = tensor.shape[-2:]
    down, across = tensor.stride()[-2:]
    if across == 1 and down >= max(1, columns) or down == 1 and across >= max(1, rows):
        return True
    return tensor.is_contiguous() and down != 0 and across != 0


@kernel("mm", "addmm", "bmm", "baddbmm", "_addmm_activation")
def product_operands(call: Call):
    operands = [call.get(name) for name in ("mat1", "mat2", "batch1", "batch2")]
    if call.func._schema.name in ("aten::mm", "aten::bmm"):
        operands = list(call.args[:2])
    steps = Steps().out()
    for operand in operands:
        if operand is not None and operand.numel() and not _readable(operand):
            steps.take(nbytes(operand))
    name = call.func._schema.name
    if releases.now().lt_workspace == "call" and name in FUSED_BIAS and _bias_is_fused(name, call.args, call.kwargs):
        steps.take(cublaslt_workspace_bytes())
    return steps.done()
