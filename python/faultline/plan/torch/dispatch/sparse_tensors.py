"""Sparse tensors on the planned GPU: made of their indices and values, which are tensors as any other, so that what each operation takes is what is made of these.

COO and CSR. Each operation is the one of PyTorch's kernels for GPUs, step by step as far as its memory is concerned (compared with an H200, PyTorch 2.11). An operation
that is not here ends the plan with a sentence. How many elements remain where duplicates are added up, or zeros left out, is computed where the values are known, else all are counted.
"""

from __future__ import annotations

import torch

from ...session.unplannable import Unplannable
from ..operations.operations import HANDLERS, overloads
from ..tensors.naming import op_name

aten = torch.ops.aten
Tensor = torch.Tensor
_TABLE: dict = {}
_dry = None  # the mode in force


class SparseOnGpu(torch.Tensor):
    """parts: (indices, values), or (rows' beginnings, columns, values)."""

    @staticmethod
    def __new__(cls, size, layout, parts, coalesced: bool):
        values = parts[-1]
        this = torch.Tensor._make_wrapper_subclass(  # C++ knows no other sparse layout without an implementation of its own
            cls, tuple(size), dtype=values.dtype, device=values.device, layout=torch.sparse_coo, requires_grad=False
        )
        this.parts, this.coalesced, this._layout = tuple(parts), coalesced, layout
        return this

    def __init__(self, *_args):
        pass

    layout = property(lambda self: self._layout)
    is_sparse = property(lambda self: self._layout is torch.sparse_coo)
    is_sparse_csr = property(lambda self: self._layout is torch.sparse_csr)

    @property
    def count(self) -> int:
        return self.parts[-2].size(-1)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        handler = _TABLE.get(func)
        if handler is None:
            raise Unplannable(
                f"{op_name(func)} on sparse tensors on the GPU is not known to a dry run (what is: docs/plan-libraries.md)"
            )
        return handler(*args, **(kwargs or {}))

    def __repr__(self, *_args, **_kwargs):
        return f"tensor(..., device='{self.device}', size={tuple(self.size())}, nnz={self.count}, layout={self.layout})"


def _coo(indices, values, size, coalesced=False) -> SparseOnGpu:
    return SparseOnGpu(size, torch.sparse_coo, (indices, values), bool(coalesced))


def _csr(rows, columns, values, size) -> SparseOnGpu:
    return SparseOnGpu(size, torch.sparse_csr, (rows, columns, values), True)


def _on(*names):
    def keep(function):
        for overload in overloads(*names):
            _TABLE[overload] = function
        return function

    return keep


def _bytes(count: int, like: Tensor) -> Tensor:
    """Memory for a while."""
    return torch.empty(int(count), dtype=torch.uint8, device=like.device)


# --- parts and properties

_on("_indices", "indices")(lambda s: s.parts[0].detach())
_on("_values", "values")(lambda s: s.parts[-1].detach())
_on("crow_indices")(lambda s: s.parts[0].detach())
_on("col_indices")(lambda s: s.parts[1].detach())
_on("_nnz")(lambda s: s.count)
_on("is_coalesced")(lambda s: s.coalesced)
_on("sparse_dim", "_dimI")(lambda s: s.parts[0].size(0) if s.layout is torch.sparse_coo else 2)
_on("dense_dim", "_dimV")(lambda s: s.parts[-1].dim() - 1)


@_on("_coalesced_", "_coalesced")
def mark_coalesced(s, coalesced):
    s.coalesced = coalesced
    return s


@_on("detach", "alias", "lift_fresh")
def same(s):
    return SparseOnGpu(s.size(), s.layout, s.parts, s.coalesced)


def _all_parts(s, values, copy_indices=True) -> SparseOnGpu:
    indices = [p.clone() for p in s.parts[:-1]] if copy_indices else s.parts[:-1]
    return SparseOnGpu(s.size(), s.layout, (*indices, values), s.coalesced)


@_on("clone")
def clone(s, memory_format=None):
    values = s.parts[-1].clone()
    return _all_parts(s, values)


@_on("zero_")
def zero(s):
    empty = nothing(s)
    s.parts, s.coalesced = empty.parts, True
    return s


@_on("empty_like", "zeros_like")
def nothing(s, *_args, **_options):
    empty = [p.new_empty((*p.shape[:-1], 0)) for p in s.parts[:1]]
    if s.layout is not torch.sparse_coo:
        raise Unplannable("an empty CSR tensor like another is not known to a dry run")
    return _coo(empty[0], s.parts[1].new_empty((0, *s.parts[1].shape[1:])), s.size(), True)


@_on("_to_copy")
def to_copy(s, dtype=None, device=None, layout=None, **_options):
    if device is not None and torch.device(device).type == "cpu":
        parts = [p.cpu() for p in s.parts]
        values = parts[-1].to(dtype or s.dtype)
        if s.layout is torch.sparse_coo:
            return torch.sparse_coo_tensor(parts[0], values, s.size(), is_coalesced=s.coalesced)
        return torch.sparse_csr_tensor(parts[0], parts[1], values, s.size())
    if dtype is not None and dtype is not s.dtype:
        return _all_parts(s, s.parts[-1].to(dtype))
    return clone(s)


# --- duplicates


def _distinct(indices, size) -> int:
    """How many different places there are."""
    known = _dry.values.view(indices)
    if known is None or _dry.values.is_assumed(indices):
        _dry.notes.at_most(
            f"coalesce() of {indices.size(1)} unknown indices: all were counted as different, the most there can be"
        )
        return indices.size(1)
    return torch.unique(known, dim=1).size(1)


@_on("_coalesce", "coalesce")
def coalesce(s):
    if s.coalesced:
        return s
    indices, values = s.parts
    count = indices.size(1)
    flat, order, places = (_bytes(8 * count, indices) for _ in range(3))
    _bytes(16 * count + 511, indices)  # taken and given back
    remain = _distinct(indices, s.size())
    summed = values.new_empty((remain, *values.shape[1:]))
    made = indices.new_empty((indices.size(0), remain))
    del flat, order, places
    return _coo(made, summed, s.size(), True)


# --- from dense to sparse, and back


def from_dense(dense, sparse_dim=None, **_options):
    places = dense.nonzero()
    indices = places.t().contiguous()
    values = dense.new_empty(places.size(0))
    dense.new_empty(places.size(0))  # taken and given back
    return _coo(indices, values, dense.size(), True)


def csr_from_dense(dense, *_args, **_options):
    mask = torch.empty(dense.size(), dtype=torch.bool, device=dense.device)
    places = dense.nonzero()
    rows = torch.empty(dense.size(0) + 1, dtype=torch.int64, device=dense.device)
    flat = torch.empty(places.size(0), dtype=torch.int64, device=dense.device)
    values = dense.new_empty(places.size(0))
    del flat, mask
    return _csr(rows, places.t()[1], values, dense.size())


@_on("to_dense", "_to_dense")
def to_dense(s, dtype=None, masked_grad=None):
    result = torch.zeros(s.size(), dtype=dtype or s.dtype, device=s.device)
    if s.layout is not torch.sparse_coo:
        count = s.parts[1].size(-1)
        _bytes(8 * 8 * count, result)  # taken and given back
    return result


@_on("_to_sparse", "to_sparse", "_to_sparse_csr", "to_sparse_csr")
def to_sparse(s, *_args, layout=None, **_options):
    wanted = layout or (torch.sparse_coo if s.layout is torch.sparse_coo else s.layout)
    return to_csr(s) if wanted is torch.sparse_csr else to_coo(s)


@_on("_to_sparse_csr", "to_sparse_csr")
def to_csr(s, *_args, **_options):
    if s.layout is torch.sparse_csr:
        return s
    s = coalesce(s)
    rows = torch.empty(s.size(0) + 1, dtype=torch.int64, device=s.device)
    return _csr(rows, s.parts[0][1], s.parts[1], s.size())


def to_coo(s):
    if s.layout is torch.sparse_coo:
        return s
    indices = torch.empty((2, s.count), dtype=torch.int64, device=s.device)
    return _coo(indices, s.parts[-1], s.size(), True)


# --- products


@_on("_sparse_mm", "mm", "matmul", "_sparse_sparse_matmul")
def mm(a, b, *_reduce):
    if isinstance(a, SparseOnGpu) and isinstance(b, SparseOnGpu):
        return _sparse_sparse(a, b)
    if not isinstance(a, SparseOnGpu):
        return (
            torch.mm(b.t(), a.t()).t() if b.layout is torch.sparse_coo else _dense_out(b, a.size(0), b.size(1), a.dtype)
        )
    return addmm(torch.zeros((a.size(0), b.size(1)), dtype=b.dtype, device=b.device), a, b)


@_on("addmm", "_sparse_addmm", "sspaddmm")
def addmm(t, a, b, beta=1, alpha=1):
    if not isinstance(a, SparseOnGpu) or isinstance(b, SparseOnGpu):
        raise Unplannable("this product with a sparse tensor on the GPU is not known to a dry run")
    if a.size(1) != b.size(0):
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.size(1)}, got {b.size(0)}")
    return _dense_out(a, a.size(0), b.size(1), b.dtype)


def _dense_out(s, rows: int, columns: int, dtype):
    result = torch.empty((rows, columns), dtype=dtype, device=s.device)
    if s.layout is torch.sparse_coo:
        s = coalesce(s)
        first = _bytes(4 * (s.size(0) + 1), result)
        _bytes(4 * s.count, result)  # taken and given back
        second = _bytes(4 * s.count, result)
        turned = torch.empty_like(result)
        del first, second, turned
    else:
        _bytes(8 * (s.size(0) + 1) + 479, result)  # taken and given back
    return result


@_on("mv", "addmv")
def mv(*args, **_options):
    s, vector = [a for a in args if isinstance(a, Tensor)][-2:]
    return _dense_out(s, s.size(0), 1, vector.dtype).view(-1)


def _sparse_sparse(a, b):
    """The result has at most one element for each pair of elements in a column and a row that meet."""
    rows, columns = a.size(0), b.size(1)
    count = min(rows * columns, a.count * max(1, -(-b.count // max(1, b.size(0)))))
    _dry.notes.add(
        "value",
        "the product of two sparse tensors has as many elements as their values make: counted as if they were spread evenly",
    )
    scratch = _bytes(int(12 * (a.count + b.count) / 2 + 16 * count * 1.5), a.parts[-1])
    values = a.parts[-1].new_empty(count)
    indices = torch.empty((2, count), dtype=torch.int64, device=a.device)
    del scratch
    return (
        _coo(indices, values, (rows, columns), True)
        if a.layout is torch.sparse_coo
        else _csr(torch.empty(rows + 1, dtype=torch.int64, device=a.device), indices[1], values, (rows, columns))
    )


# --- sums and elementwise


@_on("add", "sub")
def add(a, b, alpha=1):
    if a.size() != b.size():
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {tuple(a.size())} != {tuple(b.size())}"
        )
    if isinstance(a, SparseOnGpu) and isinstance(b, SparseOnGpu):
        indices = torch.cat((a.parts[0], b.parts[0]), 1)
        return _coo(indices, torch.cat((a.parts[1], b.parts[1])), a.size())
    return (b if isinstance(a, SparseOnGpu) else a).clone()


@_on("add_", "sub_")
def add_into(a, b, alpha=1):
    if isinstance(a, SparseOnGpu):
        made = add(a, b)
        a.parts, a.coalesced = made.parts, False
        return a
    _dry.values.forget(a)
    return a


@_on("mul", "div")
def mul(a, b, *_args, **_options):
    s, other = (a, b) if isinstance(a, SparseOnGpu) else (b, a)
    if isinstance(other, SparseOnGpu) or isinstance(other, Tensor) and other.dim() and other.size() == s.size():
        s = coalesce(s)
    return _all_parts(s, torch.empty_like(s.parts[-1]))


@_on("mul_", "div_", "copy_")
def in_place(a, b, *_args, **_options):
    if isinstance(a, SparseOnGpu) and isinstance(b, SparseOnGpu) and a.count != b.count:
        a.parts, a.coalesced = clone(b).parts, b.coalesced
    return a


@_on(
    "neg",
    "abs",
    "relu",
    "sin",
    "tanh",
    "sqrt",
    "square",
    "pow",
    "sign",
    "floor",
    "ceil",
    "expm1",
    "log1p",
    "erf",
    "asin",
    "atan",
    "sgn",
    "conj_physical",
)
def unary(s, *_args):
    s = coalesce(s) if s.layout is torch.sparse_coo else s
    return _all_parts(s, torch.empty_like(s.parts[-1]))


@_on("t", "transpose", "numpy_T", "adjoint")
def transpose(s, first=0, second=1):
    if s.layout is not torch.sparse_coo or s.parts[0].size(0) != 2:
        raise Unplannable("transposing a sparse tensor of this layout on the GPU is not known to a dry run")
    values = s.parts[1].clone()
    return _coo(s.parts[0].flip(0), values, (s.size(1), s.size(0)), False)


@_on("_sparse_softmax", "_sparse_log_softmax")
def softmax(s, dim=-1, *_options):
    s = coalesce(s)
    result = _all_parts(s, torch.empty_like(s.parts[-1]))
    _bytes(24 * s.count, result.parts[-1])  # taken and given back
    return result


@_on("_sparse_sum", "sum")
def total(s, dim=None, *_args, **_options):
    dims = (
        [d % s.dim() for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
        if dim is not None and dim != []
        else range(s.dim())
    )
    keep = [d for d in range(s.dim()) if d not in dims]
    if not keep:
        return s.parts[-1].sum()
    if s.layout is not torch.sparse_coo or len(keep) > 1:
        raise Unplannable("this sum of a sparse tensor on the GPU is not known to a dry run")
    values, indices = torch.empty_like(s.parts[-1]), torch.empty((1, s.count), dtype=torch.int64, device=s.device)
    places = [_bytes(8 * s.count, values) for _ in range(3)]
    _bytes(16 * s.count + 511, values)  # taken and given back
    count = min(s.count, s.size(keep[0]))
    summed = values.new_empty(count)
    del places
    return _coo(indices[:, :count], summed, (s.size(keep[0]),), True)


@_on("sparse_mask", "_sparse_mask_projection")
def mask(dense, s, *_args):
    if isinstance(dense, SparseOnGpu):
        return _all_parts(s, s.parts[-1].new_empty(s.parts[-1].size()))
    return masked(dense, s)


def masked(dense, s):
    values = dense.new_empty(s.parts[-1].size())
    indices = s.parts[0].clone()
    torch.empty_like(values)  # taken and given back
    return _coo(indices, values, s.size(), s.coalesced)


# --- where they come from


def _made(dry, func, args, kwargs):
    """sparse_coo_tensor(indices, values, size), in whichever form."""
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    size = next((a for a in args if isinstance(a, (list, tuple, torch.Size)) and not isinstance(a, Tensor)), None)
    if len(tensors) == 2 and size is not None:
        return _coo(tensors[0], tensors[1], size, kwargs.get("is_coalesced"))
    if len(tensors) == 3 and size is not None:
        return _csr(*tensors, size)
    if not tensors and size is not None and kwargs.get("layout") is torch.sparse_coo:
        device = kwargs["device"]
        with dry:
            indices = torch.empty((len(size), 0), dtype=torch.int64, device=device)
            return _coo(indices, torch.empty(0, dtype=kwargs.get("dtype"), device=device), size, True)
    raise Unplannable(f"a sparse tensor made by {op_name(func)} on the GPU is not known to a dry run")


def _converted(dry, func, args, kwargs):
    layout = kwargs.get("layout") or (torch.sparse_csr if "csr" in func._schema.name else torch.sparse_coo)
    if not args[0].is_cuda:
        return NotImplemented
    if len(args) > 1 and type(args[1]) is int and args[1] != args[0].dim():
        raise Unplannable("sparse tensors on the GPU with dense dimensions (to_sparse(N)) are not known to a dry run")
    if layout not in (torch.sparse_coo, torch.sparse_csr) or args[0].dim() != 2 and layout is torch.sparse_csr:
        raise Unplannable(f"sparse tensors of layout {layout} on the GPU are not known to a dry run")
    with dry:
        return (csr_from_dense if layout is torch.sparse_csr else from_dense)(args[0])


def move(dry, source, device, dtype=None):
    """A sparse tensor of the host, to the GPU."""
    with dry:
        if source.layout is torch.sparse_coo:
            values = aten._to_copy(source._values(), device=device, dtype=dtype)
            return _coo(aten._to_copy(source._indices(), device=device), values, source.size(), source.is_coalesced())
        if source.layout is torch.sparse_csr:
            rows, columns = (aten._to_copy(t, device=device) for t in (source.crow_indices(), source.col_indices()))
            return _csr(rows, columns, aten._to_copy(source.values(), device=device, dtype=dtype), source.size())
    raise Unplannable(f"sparse tensors of layout {source.layout} on the GPU are not known to a dry run")


MAKES = set(
    overloads(
        "_sparse_coo_tensor_with_dims_and_tensors",
        "_sparse_coo_tensor_unsafe",
        "sparse_coo_tensor",
        "_sparse_compressed_tensor_unsafe",
        "sparse_compressed_tensor",
        "_sparse_csr_tensor_unsafe",
        "sparse_csr_tensor",
        "_sparse_coo_tensor_with_dims",
    )
)


def install(dry) -> None:
    global _dry
    _dry = dry
    for func in MAKES:
        HANDLERS[func] = _made
    for func in overloads("_to_sparse", "to_sparse", "_to_sparse_csr", "to_sparse_csr"):
        HANDLERS[func] = _converted
    for func in overloads(
        "_validate_sparse_coo_tensor_args",
        "_validate_sparse_compressed_tensor_args",
        "_validate_sparse_csr_tensor_args",
    ):
        HANDLERS[func] = lambda dry, func, args, kwargs: None
