"""Which number stands for one that a dry run does not compute: one that the operation can give.

A tensor without values has one number that stands for all of its elements (Record.stand_in): 1.0 unless the operation that made it says otherwise. A softmax over
n is 1/n and its logarithm -log n, so probabilities are in [0, 1] and a cross entropy is log n; operations on single elements are applied to the stand-ins themselves;
what picks or averages elements keeps theirs, a sum counts them. A loss or a norm that they would make 0 is 1.0, and so is the difference of two tensors. Integers are 0, or the least that the
operation draws. A truth value is what a comparison of the stand-ins gives (x == x is True), but nothing is taken to be equal to something else, and what PyTorch checks of its own distributions holds: else it is False.
"""

from __future__ import annotations

import itertools
import math

import torch

from ..operations.operations import overloads

aten = torch.ops.aten


def default(dtype: torch.dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return 1.0
    return False if dtype is torch.bool else 0


def _size_along(args) -> int:
    sizes = args[0].size()
    return sizes[args[1]] if len(sizes) and len(args) > 1 and isinstance(args[1], int) else 1


def _least(args) -> int:
    """randint(high, size), randint(low, high, size), and the same behind a tensor."""
    numbers = [a for a in args if type(a) is int]
    return numbers[0] if len(numbers) > 1 else 0


def _middle(args) -> float:
    low, high = [*[a for a in args[1:] if isinstance(a, (int, float))], 0.0, 1.0][:2] if len(args) > 2 else (0.0, 1.0)
    return (low + high) / 2


def _sum(args, given):
    """As many times the element as there are in a sum."""
    if not given or isinstance(given[0], bool):
        return min(99, args[0].numel()) if given and given[0] else 0
    sizes = args[0].size()
    along = args[1] if len(args) > 1 and isinstance(args[1], (list, tuple)) and args[1] else range(len(sizes))
    whole = given[0] * math.prod(sizes[d] for d in along)
    return whole if abs(whole) < 6e4 else given[0]


_POSITIVE = (
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "soft_margin_loss",
    "kl_div",
    "_ctc_loss",
    "std",
    "var",
    "linalg_vector_norm",
    "norm",
    "_cdist_forward",
    "dist",
)
_COMPARES = (
    "lt",
    "le",
    "gt",
    "ge",
    "logical_and",
    "logical_or",
    "logical_not",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_not",
    "bitwise_xor",
)
_MADE_BY = {}
for _names, _rule in (
    (_POSITIVE, lambda args, given: 1.0),
    (("sum",), _sum),
    (("_is_all_true",), lambda args, given: True),
    (("_softmax", "softmax"), lambda args, given: 1 / max(1, _size_along(args))),
    (("_log_softmax", "log_softmax"), lambda args, given: -math.log(max(1, _size_along(args)))),
    (("log_sigmoid_forward",), lambda args, given: -0.5),
    (
        ("nll_loss_forward", "nll_loss2d_forward", "nll_loss", "nll_loss2d", "nll_loss_nd"),
        lambda args, given: abs(given[0]),
    ),
    (("rand", "rand_like"), lambda args, given: 0.5),
    (("uniform_",), lambda args, given: _middle(args)),
    (("isfinite",), lambda args, given: True),
    (("randint", "randint_like", "random_"), lambda args, given: _least(args)),
    (
        ("full", "full_like", "fill_", "new_full"),
        lambda args, given: next((a for a in reversed(args) if isinstance(a, (int, float))), None),
    ),
    (("zeros", "zeros_like", "new_zeros", "zero_"), lambda args, given: 0),
    (("arange",), lambda args, given: args[0] if len(args) > 1 else 0),
):
    _MADE_BY.update(dict.fromkeys(overloads(*_names), _rule))
_KEEPS = set(
    overloads(
        "clone",
        "_to_copy",
        "copy_",
        "index",
        "index_select",
        "gather",
        "cat",
        "stack",
        "select_copy",
        "slice_copy",
        "max",
        "min",
        "amax",
        "amin",
        "mean",
        "median",
        "all",
        "any",
        "_is_any_true",
        "sort",
        "topk",
        "masked_select",
        "take",
        "diagonal_copy",
        "flip",
        "roll",
        "constant_pad_nd",
        "repeat",
        "max_pool2d_with_indices",
        "avg_pool2d",
        "_adaptive_avg_pool2d",
        "upsample_nearest2d",
        "upsample_bilinear2d",
        "native_dropout",
        "cummax",
        "cummin",
        "kthvalue",
        "logcumsumexp",
        "logsumexp",
    )
)


_COMPARED, _DIFFERENCES, EQUAL = (
    set(overloads(*_COMPARES)),
    set(overloads("sub", "sub_", "rsub")),
    set(overloads("eq")),
)
NOT_EQUAL, AMONG = set(overloads("ne")), set(overloads("isin"))
CHECKED = set(overloads("_is_all_true"))  # by torch.distributions
_DECIDES_TRUTH = set(
    overloads(*(name + end for name in ("logical_and", "logical_or") for end in ("", "_")), "where")
)  # of any numbers, which are 0 or not, or are passed on
_DECIDES_BITS = set(
    overloads(
        *(
            name + end
            for name in ("bitwise_and", "bitwise_or", "__and__", "__or__", "__iand__", "__ior__", "mul")
            for end in ("", "_")
        )
    )
)
_MOST_DECIDED = 1024  # elements


def is_decided(func, args, kwargs, unknown: set) -> bool:
    """Whether the values that are known decide the result, whatever the unknown operands (ids) are: True | x, False & x, 0 * x. Each unknown one is tried with no bit set and with all."""
    if func not in _DECIDES_TRUTH and func not in _DECIDES_BITS:
        return False
    open_at = [at for at, value in enumerate(args) if id(value) in unknown]
    if not open_at or any(
        args[at].numel() > _MOST_DECIDED or args[at].dtype.is_floating_point and func not in _DECIDES_TRUTH
        for at in open_at
    ):
        return False
    first = None
    for bits in itertools.product((0, 1), repeat=len(open_at)):
        tried = [value.clone() if isinstance(value, torch.Tensor) else value for value in args]
        for at, bit in zip(open_at, bits):
            tried[at].fill_(-bit)
        result = func(*tried, **kwargs)
        first = result if first is None else first
        if not torch.equal(first, result):
            return False
    return True


def of_result(func, args, given: tuple):
    """For the results of an operation on tensors with these stand-ins; None: the default."""
    rule = _MADE_BY.get(func)
    if rule is not None:
        return rule(args, given) if given or not isinstance(args[0] if args else None, torch.Tensor) else None
    if func in _KEEPS and given:
        return given[0]
    if torch.Tag.pointwise not in func.tags or not given:
        return None
    if func in EQUAL:
        return len(args) > 1 and args[0] is args[1]
    if func in NOT_EQUAL and not args[0].dtype.is_floating_point:
        return len(args) > 1 and args[0] is not args[1]
    order = iter(given)

    def one(value):
        if isinstance(value, torch.Tensor):
            return torch.tensor(next(order), dtype=value.dtype, device="cpu")
        return type(value)(one(v) for v in value) if type(value) in (list, tuple) else value

    try:
        result = func(*(one(a) for a in args))
        value = (
            result.item()
            if isinstance(result, torch.Tensor) and (result.dtype is not torch.bool or func in _COMPARED)
            else None
        )
    except Exception:  # it takes no such numbers, or more than one
        return None
    if value == 0 and func in _DIFFERENCES and len(given) == 2 and given[1] and not isinstance(value, int):
        return 1.0
    return value if value is not None and not isinstance(value, complex) and math.isfinite(value) else None
