"""The shapes of an operation's results, learnt from its host kernel on small inputs: for operations that have no shape rule and operands too large to run on the host.

Sizes that are equal are taken to be one number. Each such number is replaced by a small one, and the host kernel is asked at a few points: every size of a result must be
a polynomial of the numbers, of second degree in each at most, which the points decide, and two more points must confirm it. Else nothing is learnt.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import torch

from .outcome import flatten, replace_tensors

_MOST_ELEMENTS = 1 << 22  # that the host is given at a point
_MOST_NUMBERS = 6
_MOST_IN_ONE_SIZE = 3
_NODES = (1, 2, 3)
_SMALL = 16  # sizes up to this stay as they are: heads, channels, dimensions


def _reduced(size: int) -> int:
    """A small number that has what kernels ask of a size: it divides it, and by a power of two where the size is so divisible."""
    power = size & -size
    small = min(power, 64)
    if small >= 4:
        return small
    return next((d for d in range(5, 64) if size % d == 0), 37)


def ask_host(func, args, kwargs, sized=None):
    """The result of the host kernel for operands of these sizes; sized(n) gives the size that is tried for n."""

    def host(tensor):
        size = tensor.size() if sized is None else [sized(n) for n in tensor.size()]
        if not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
            return torch.zeros(size, dtype=tensor.dtype, device="cpu")
        return torch.ones(size, dtype=tensor.dtype, device="cpu")

    host_args, host_kwargs = replace_tensors(args, kwargs, host)
    if "device" in host_kwargs:
        host_kwargs["device"] = torch.device("cpu")
    return func(*host_args, **host_kwargs)


class _Learner:
    def __init__(self, func, args, kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs
        self.operands = flatten(args, kwargs)
        sizes = {n for t in self.operands for n in t.size() if n > _SMALL}
        self.numbers = sorted(sizes)
        self.base = {n: _reduced(n) for n in self.numbers}
        self.asked: dict = {}

    def at(self, factors: dict) -> tuple | None:
        """The results' looks, ((size, dtype), …), where number n is factors[n] times its small one."""
        key = tuple(sorted(factors.items()))
        if key not in self.asked:
            sizes = {n: small * factors.get(n, 1) for n, small in self.base.items()}
            elements = sum(math.prod(sizes.get(n, n) for n in t.size()) for t in self.operands)
            if elements > _MOST_ELEMENTS:
                return None
            result = ask_host(self.func, self.args, self.kwargs, lambda n: sizes.get(n, n))
            leaves = list(result) if isinstance(result, (list, tuple)) else [result]
            if not all(isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided for leaf in leaves):
                return None
            self.asked[key] = tuple((tuple(leaf.size()), leaf.dtype) for leaf in leaves)
        return self.asked[key]

    def looks(self) -> list | None:
        """((size, dtype), …) for the operands as they are."""
        first = self.at({})
        if first is None or len(self.numbers) > _MOST_NUMBERS:
            return None
        doubled = {n: self.at({n: 2}) for n in self.numbers}
        if any(d is None or [len(s) for s, _ in d] != [len(s) for s, _ in first] for d in doubled.values()):
            return None
        looks = []
        for place, (size, dtype) in enumerate(first):
            whole = []
            for dim, small in enumerate(size):
                matter = [n for n in self.numbers if doubled[n][place][0][dim] != small]
                formula = self._formula(place, dim, matter)
                if formula is None or not self._confirmed(place, dim, formula):
                    return None
                value = formula({n: Fraction(n, self.base[n]) for n in matter})
                if value.denominator != 1:
                    return None
                whole.append(int(value))
            looks.append((tuple(whole), dtype))
        return looks

    def _formula(self, place: int, dim: int, matter: list):
        """The size as a function of the factors: the polynomial, of second degree in each number at most, through its values where each is taken once, twice and three times."""
        if len(matter) > _MOST_IN_ONE_SIZE:
            return None
        values = {}
        for point in itertools.product(_NODES, repeat=len(matter)):
            found = self.at({n: factor for n, factor in zip(matter, point) if factor != 1})
            if found is None or len(found[place][0]) <= dim:
                return None
            values[point] = found[place][0][dim]

        def weight(node: int, at: Fraction) -> Fraction:
            return math.prod(
                ((at - other) / Fraction(node - other) for other in _NODES if other != node), start=Fraction(1)
            )

        def size(factors: dict) -> Fraction:
            return sum(
                value
                * math.prod(
                    (weight(node, Fraction(factors.get(n, 1))) for n, node in zip(matter, point)), start=Fraction(1)
                )
                for point, value in values.items()
            )

        return size

    def _confirmed(self, place: int, dim: int, formula) -> bool:
        for factors in (dict.fromkeys(self.numbers, 4), {n: 2 + at % 4 for at, n in enumerate(self.numbers, 1)}):
            found = self.at(factors)
            if found is None or len(found[place][0]) <= dim or found[place][0][dim] != formula(factors):
                return False
        return True


def learn(func, args, kwargs) -> list | None:
    """((size, dtype), …) of the results, or None where the host kernel does not tell."""
    try:
        return _Learner(func, args, kwargs).looks()
    except Exception:  # it does not take such sizes, or is not there after all
        return None
