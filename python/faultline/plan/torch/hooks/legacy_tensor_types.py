"""Ways to a GPU tensor that go around the dispatch mode: torch.cuda.FloatTensor and its kin, and lists as indices."""

from __future__ import annotations

import torch

_KINDS = {
    "FloatTensor": torch.float32,
    "DoubleTensor": torch.float64,
    "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16,
    "LongTensor": torch.int64,
    "IntTensor": torch.int32,
    "ShortTensor": torch.int16,
    "CharTensor": torch.int8,
    "ByteTensor": torch.uint8,
    "BoolTensor": torch.bool,
}


class _Kind(type):
    """The type of torch.cuda.FloatTensor: a name for GPU tensors of one dtype."""

    def __instancecheck__(cls, obj):
        return isinstance(obj, torch.Tensor) and obj.is_cuda and obj.dtype is cls.dtype

    def __call__(cls, *args, device=None):
        if not args:
            return torch.empty(0, dtype=cls.dtype, device="cuda")
        if len(args) == 1 and isinstance(args[0], torch.Tensor):
            return args[0].to("cuda", cls.dtype)
        if all(isinstance(a, int) for a in args) or isinstance(args[0], torch.Size):
            return torch.empty(args if isinstance(args[0], int) else args[0], dtype=cls.dtype, device="cuda")
        return torch.tensor(args[0], dtype=cls.dtype, device="cuda")


def install(read_scalar) -> None:
    """read_scalar: function(tensor) → its number, as the program's reads have it."""
    kinds = {}
    _read_below_modes(read_scalar)
    for name, dtype in _KINDS.items():
        kind = _Kind(name, (), {"dtype": dtype, "is_cuda": True, "is_sparse": False, "__module__": "torch.cuda"})
        setattr(torch.cuda, name, kind)
        kinds[f"torch.cuda.{name}"] = kind
    _patch_type(kinds)
    _patch_default(kinds)
    moves_what_it_makes()
    if _moves is None:  # a release that cannot
        torch.Tensor.__getitem__ = _with_tensors(torch.Tensor.__getitem__)
        torch.Tensor.__setitem__ = _with_tensors(torch.Tensor.__setitem__)


_READS = "aten::_local_scalar_dense"


def _read_below_modes(read_scalar) -> None:
    """torch.FloatTensor([tensor of the GPU]) reads it where no dispatch mode is asked: a build without CUDA has no kernel there, and gets one."""
    if not torch._C._dispatch_has_kernel_for_dispatch_key(_READS, "CUDA"):
        _kernels.append(torch.library.Library("aten", "IMPL", "CUDA"))
        _kernels[-1].impl(_READS.partition("::")[2], read_scalar)


_kernels: list = []  # they end with the library's Python object


# Methods of Tensor in the place of PyTorch's would be no way to the same: with a `__getitem__` of Python's even a tensor without dimensions counts as a sequence, and torch.tensor([a, b]) fails.
_moves = getattr(torch._C, "_set_only_lift_cpu_tensors", None)


def moves_what_it_makes() -> None:
    """Asks PyTorch, for this thread, to make tensors of Python's data on the host and to move them by an operation that can be seen."""
    if _moves is not None:
        _moves(True)


def _patch_type(kinds) -> None:
    original = torch.Tensor.type

    def faultline(tensor, dtype=None, non_blocking=False, **kwargs):
        kind = kinds.get(dtype, dtype) if isinstance(dtype, str) else dtype
        if isinstance(kind, _Kind):
            return tensor.to("cuda", kind.dtype, non_blocking=non_blocking)
        return original(tensor) if dtype is None else original(tensor, dtype, non_blocking, **kwargs)

    torch.Tensor.type = faultline


def _patch_default(kinds) -> None:
    original = torch.set_default_tensor_type

    def faultline(kind):
        kind = kinds.get(kind, kind) if isinstance(kind, str) else kind
        if isinstance(kind, _Kind):
            torch.set_default_dtype(kind.dtype)
            torch.set_default_device("cuda")
            return
        torch.set_default_device(None)
        original(kind)

    torch.set_default_tensor_type = faultline


def _is_numbers(index) -> bool:
    return (
        isinstance(index, list)
        and len(index) > 0
        and all(isinstance(i, (int, list)) for i in index)
        or type(index).__name__ == "ndarray"
    )


def _with_tensors(original):
    """Lists and arrays of numbers become host tensors, which PyTorch moves by an operation that the dry run sees."""

    def faultline(tensor, index, *value):
        if not isinstance(index, (int, slice, torch.Tensor)) and tensor.is_cuda:
            if _is_numbers(index):
                index = torch.tensor(index, device="cpu")
            elif isinstance(index, tuple) and any(map(_is_numbers, index)):
                index = tuple(torch.tensor(i, device="cpu") if _is_numbers(i) else i for i in index)
        return original(tensor, index, *value)

    return faultline
