"""What the schema of an operation and its kernels tell: which operands are written, which may lie elsewhere, which must have one type; and the handlers of those that need more."""

from __future__ import annotations

import functools

import torch

from ...session.unplannable import Unplannable, is_own_accident, own_failure
from ..tensors.naming import op_name
from .outcome import flatten, replace_tensors

aten = torch.ops.aten
Tensor = torch.Tensor
CPU = torch.device("cpu")
HANDLERS: dict = {}
_TAKEN_BY_HOST = "_faultline_taken_by_host"  # on an error: the operation's name


def handles(*functions):
    def keep(handler):
        for function in functions:
            HANDLERS[function] = handler
        return handler

    return keep


def overloads(*names):
    found = []
    for name in names:
        packet = getattr(aten, name, None)
        if packet is not None:
            found += [getattr(packet, overload) for overload in packet.overloads()]
    return found


# These look at what an operand is like, and may make another on another device.
LIKES = set(
    overloads(
        "empty_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_empty",
        "new_empty_strided",
        "new_zeros",
        "new_ones",
        "new_full",
    )
)

# The host's tensors may stand beside the GPU's in these: copies, and indices and sizes that PyTorch moves by itself.
MIXES_DEVICES = LIKES | set(
    overloads(
        "_to_copy",
        "copy_",
        "copy",
        "index",
        "index_put",
        "index_put_",
        "_index_put_impl_",
        "_pin_memory",
        "is_pinned",
        "set_",
        "lift_fresh",
        "_has_compatible_shallow_copy_type",
        "_foreach_copy_",
        "_pack_padded_sequence",
        "_pack_padded_sequence_backward",
        "split_with_sizes",
        "_use_cudnn_ctc_loss",
        "_ctc_loss_backward",
        "_cudnn_rnn",
        "_cudnn_rnn_backward",
        "_cudnn_init_dropout_state",
        "nested_tensor",
        "ctc_loss",
        "_ctc_loss",
        "_cudnn_ctc_loss",
    )
)


# Operands (by position) that must have one type.
SAME_TYPE = {
    aten.mm.default: (0, 1),
    aten.bmm.default: (0, 1),
    aten.addmm.default: (0, 1, 2),
    aten.baddbmm.default: (0, 1, 2),
    aten.addmv.default: (0, 1, 2),
    aten.mv.default: (0, 1),
    aten.dot.default: (0, 1),
    aten.convolution.default: (0, 1, 2),
}


def type_problem(func, operands) -> str:
    """The words of PyTorch 2.11 on a GPU."""
    names = [str(t.dtype)[6:] for t in operands]
    words = {
        "float32": "float",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "float64": "double",
        "int64": "long",
        "int32": "int",
    }
    if func is aten.convolution.default:
        kinds = {
            "float32": "FloatTensor",
            "float16": "HalfTensor",
            "bfloat16": "BFloat16Tensor",
            "float64": "DoubleTensor",
        }
        which = "weight" if operands[0].dtype is not operands[1].dtype else "bias"
        other = operands[1] if which == "weight" else operands[2]
        return f"Input type (torch.cuda.{kinds.get(names[0], names[0])}) and {which} type (torch.cuda.{kinds.get(str(other.dtype)[6:], str(other.dtype)[6:])}) should be the same"
    first, second = (
        (operands[1], operands[2])
        if len(operands) == 3 and operands[1].dtype is not operands[2].dtype
        else (operands[0], operands[-1])
    )
    return f"expected mat1 and mat2 to have the same dtype, but got: {words.get(str(first.dtype)[6:], str(first.dtype)[6:])} != {words.get(str(second.dtype)[6:], str(second.dtype)[6:])}"


def refusal(func, args, kwargs, problem: Exception) -> Exception:
    """An operation that a meta kernel refused, in the words of a real kernel: the host's is asked with operands of the same layout. It refuses before it computes; where the operands are large, in case it does not, it is not asked."""
    if sum(t.numel() for t in flatten(args, kwargs)) > 1 << 22:
        return problem
    try:
        _on_host(func, args, kwargs)
    except (RuntimeError, IndexError, ValueError) as told:
        if not isinstance(told, NotImplementedError) and "single memory location" not in str(told):
            return type(told)(str(told))
    else:
        setattr(problem, _TAKEN_BY_HOST, op_name(func))
    return problem


def _on_host(func, args, kwargs) -> None:
    """The kernel of the host, on operands of the same look, whose numbers are zeros."""
    args, kwargs = replace_tensors(args, kwargs, lambda t: torch.empty_strided(t.size(), t.stride(), dtype=t.dtype))
    if "device" in kwargs:
        kwargs["device"] = CPU
    for operand in flatten(args, kwargs):
        if not operand.dtype.is_floating_point and not operand.dtype.is_complex:
            operand.zero_()  # indices
    func(*args, **kwargs)


def check_blame(func, args, kwargs, problem: Exception) -> None:
    """An error that comes out of the dry run's own code, where no line of it raises one, is the dry run's if the host computes the same: told instead of an operation's that would be proved."""
    if not is_own_accident(problem) or sum(t.numel() for t in flatten(args, kwargs)) > 1 << 22:
        return
    try:
        _on_host(func, args, kwargs)
    except Exception:
        return
    raise Unplannable(own_failure(f"{op_name(func)} could not be followed", problem)) from problem


def taken_by_host(problem: BaseException) -> str:
    """The operation that ended so though PyTorch's own kernel for the host computes it: the dry run is wrong, not the program."""
    return getattr(problem, _TAKEN_BY_HOST, "")


# These may show more of a storage than the tensor they are given does.
REACHES_BEYOND = set(overloads("as_strided", "as_strided_", "as_strided_copy", "resize_", "set_"))


@functools.lru_cache(maxsize=None)
def _write_positions(func) -> tuple[frozenset, frozenset]:
    positions, names = set(), set()
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            positions.add(position)
            names.add(argument.name)
    return frozenset(positions), frozenset(names)


def written(func, args, kwargs) -> list[int]:
    """Which operands, in the order of mode.flatten, the operation writes into."""
    positions, names = _write_positions(func)
    if not positions:
        return []
    found: list[int] = []
    index = 0
    for write, value in [(p in positions, a) for p, a in enumerate(args)] + [
        (k in names, v) for k, v in kwargs.items()
    ]:
        for tensor in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(tensor, Tensor):
                if write:
                    found.append(index)
                index += 1
    return found


_OVERWRITES = set(
    overloads(
        "fill_",
        "zero_",
        "copy_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "exponential_",
        "geometric_",
        "log_normal_",
        "cauchy_",
    )
)


def only_written(func) -> tuple[int, ...]:
    """Operands whose old values do not matter."""
    return (0,) if func in _OVERWRITES else ()
