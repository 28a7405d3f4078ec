"""What a compiled function takes beside its arguments and results on a GPU, where XLA's compiler for GPUs is not there to be asked: likely, at least and at most.

The compiler for the CPU is asked with jax.checkpoint's barriers left in (by itself it takes them out before it looks for common parts, and so undoes all of jax.checkpoint outside loops). It
fuses less than a GPU's, so the traced function's own equations are asked too, in their order: a compiler makes one kernel of what is computed element by element, and keeps nothing between. What
counts there is what has to lie in memory: results of products, reductions, scans and the like, and what is used more than once. What is much larger than what it is made of is made again where
it is used (a product that is only summed up, random numbers). What makes memory smaller is done as soon as it can be, and jax.checkpoint's second computation is where JAX put it.

The shares below are those with which the interval has every function of docs/measurements/jax-plan-accuracy.md inside.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from . import jaxpr_cost

_EXPANDS = 4  # times what it is made of: it is made again instead
_MOST_SOURCES = 8
_WHOLE = set("dot_general conv_general_dilated sort top_k fft cholesky lu qr eigh svd".split())
_INLINED = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "checkpoint",
    "remat",
    "remat2",
)
_RANDOM = set("random_bits random_split random_fold_in random_seed threefry2x32".split())  # made where they are used
_PASSES = (
    jaxpr_cost.FUSES
    | _RANDOM
    | set("optimization_barrier name sharding_constraint split add_any device_put erfc".split())
)


_LEAST_SHARE = 0.6  # of the smaller of the two
_MOST_SHARE = 1.25  # of what the CPU's compiler says
_RESULTS_SHARE = 0.2  # of the results, whose memory the CPU's compiler uses for temporaries before they are there


def temporary_bytes(jaxpr, by_cpu_bytes: int, workspace_bytes: int) -> tuple[int, int, int]:
    """likely, least, most. by_cpu_bytes: with its barriers; workspace_bytes: what cuBLAS may ask for."""
    by_equations = _by_equations(jaxpr, True)
    if by_equations == 0:  # one kernel, such as random numbers, which the CPU's compiler makes in several
        by_cpu_bytes = 0
    smaller = by_cpu_bytes if by_equations is None else min(by_cpu_bytes, by_equations)
    fewest = smaller if by_equations is None else min(smaller, _by_equations(jaxpr, False))
    surely, most = _scratch_bytes(jaxpr, workspace_bytes)
    results = sum(_bytes(aval) for aval in jaxpr.out_avals)
    return (
        smaller + surely,
        int(_LEAST_SHARE * fewest),
        int(_MOST_SHARE * by_cpu_bytes + _RESULTS_SHARE * results) + most,
    )


def _by_equations(jaxpr, with_operands: bool) -> int | None:
    """with_operands: what is multiplied has to lie in memory, however it was made. None: what jax.checkpoint was told (prevent_cse=False) lets the compiler undo it."""
    return None if _may_be_undone(jaxpr) else _Walk(with_operands).peak_of(jaxpr)


def _may_be_undone(jaxpr) -> bool:
    for equation in jaxpr_cost.bare(jaxpr).eqns:
        name, params = equation.primitive.name, equation.params
        if name in ("checkpoint", "remat", "remat2") and params.get("prevent_cse") is False:
            return True
        if name in _INLINED and any(map(_may_be_undone, jaxpr_cost.inner_of(params))):
            return True
    return False


def _scratch_bytes(jaxpr, workspace_bytes: int) -> tuple[int, int]:
    """What libraries take that the CPU's compiler does not know: surely (sorting has its keys twice), and at most."""
    surely = most = 0
    for equation in jaxpr_cost.bare(jaxpr).eqns:
        name = equation.primitive.name
        operands = sum(_bytes(v.aval) for v in equation.invars)
        inner = [_scratch_bytes(each, workspace_bytes) for each in jaxpr_cost.inner_of(equation.params)]
        if inner:
            surely, most = max(surely, *(one for one, _ in inner)), max(most, *(one for _, one in inner))
        elif name in ("sort", "top_k"):
            surely, most = max(surely, operands), max(most, operands)
        elif name == "dot_general":
            most = max(most, workspace_bytes)
        elif name in _OF_LIBRARIES:
            most = max(most, _OF_LIBRARIES[name] * operands + workspace_bytes)
    return surely, most


def _bytes(aval) -> int:
    kind = getattr(aval, "dtype", None)
    try:
        return jaxpr_cost.elements_of(aval) * np.dtype(kind).itemsize
    except TypeError:
        return 16 * jaxpr_cost.elements_of(aval)  # keys


# Times their operands, what cuDNN, cuFFT and cuSOLVER may ask for beside them.
_OF_LIBRARIES = {
    "conv_general_dilated": 1,
    "fft": 2,
    "eigh": 4,
    "svd": 4,
    "qr": 2,
    "geqrf": 2,
    "cholesky": 1,
    "lu": 1,
    "triangular_solve": 1,
}


class _Value:
    """sources: values in memory that it is made of; itself, where it is one of them. weight: what it takes, counted here or not."""

    __slots__ = ("bytes", "weight", "sources", "made", "last")

    def __init__(self, size: int, made: int, sources=None):
        self.bytes, self.weight, self.made, self.last = size, size, made, made
        self.sources = (self,) if sources is None else sources


class _Walk:
    def __init__(self, with_operands: bool):
        self._with_operands = with_operands
        self._now = 0
        self._values: list[_Value] = []
        self._inner: list[tuple[int, int]] = []  # the moment, and what a loop takes within

    def peak_of(self, jaxpr) -> int:
        bare = jaxpr_cost.bare(jaxpr)
        results = self._run(bare, *([self._given(v) for v in some] for some in (bare.constvars, bare.invars)))
        for result in results:  # a result's own memory is no temporary's
            for source in result.sources:
                source.last = max(source.last, result.made)
            if result.sources == (result,):
                result.bytes = 0
        changes: Counter = Counter()
        for value in self._values:
            changes[value.made] += value.bytes
            changes[value.last + 1] -= value.bytes
        peak = now = 0
        within = Counter()
        for moment, size in self._inner:
            within[moment] = max(within[moment], size)
        for moment in sorted({*changes, *within}):
            now += changes[moment]
            peak = max(peak, now + within[moment])
        return peak

    def _given(self, variable) -> _Value:
        """An argument lies in memory, and is no temporary."""
        value = _Value(_bytes(variable.aval), 0)
        value.bytes = 0
        return value

    def _run(self, bare, constants, arguments) -> list[_Value]:
        known = dict(zip([*bare.constvars, *bare.invars], [*constants, *arguments]))
        uses = Counter(id(v) for e in bare.eqns for v in {id(a): a for a in e.invars if not hasattr(a, "val")}.values())
        free = _Value(0, 0, ())
        for equation in bare.eqns:
            given = [free if hasattr(a, "val") else known[a] for a in equation.invars]
            for variable, value in zip(equation.outvars, self._results(equation, given, uses)):
                known[variable] = value
        return [free if hasattr(a, "val") else known[a] for a in bare.outvars]

    def _results(self, equation, given: list[_Value], uses: Counter) -> list[_Value]:
        name, params = equation.primitive.name, equation.params
        inner = list(jaxpr_cost.inner_of(params))
        if name in _INLINED and inner:
            bare = jaxpr_cost.bare(inner[0])
            if len(bare.invars) == len(given):
                return self._run(bare, [self._given(v) for v in bare.constvars], given)
        sources = tuple({id(s): s for value in given for s in value.sources}.values())
        ready = max((value.made for value in given), default=0)
        sizes = [_bytes(v.aval) for v in equation.outvars]
        if self._passes(equation):
            return [self._passed(v, size, sources, ready, uses) for v, size in zip(equation.outvars, sizes)]
        shrinks = sum(sizes) <= sum(source.bytes for source in sources)
        self._now += 1
        made = ready if shrinks and ready else self._now
        for source in sources:
            source.last = max(source.last, made)
        if self._with_operands and name in _WHOLE:
            made_for_it = [v for v in given if v.bytes > _EXPANDS * sum(s.weight for s in v.sources)]
            self._inner.append((made, sum(value.bytes for value in made_for_it)))
        if inner:
            self._inner.append((made, max(_Walk(self._with_operands).peak_of(each) for each in inner)))
        return [self._new(size, made) for size in sizes]

    def _new(self, size: int, made: int) -> _Value:
        value = _Value(size, made)
        self._values.append(value)
        return value

    def _passed(self, variable, size: int, sources: tuple, ready: int, uses: Counter) -> _Value:
        of_bytes = sum(source.weight for source in sources)
        if (uses[id(variable)] > 1 and of_bytes * _EXPANDS > size) or len(sources) > _MOST_SOURCES:
            for source in sources:
                source.last = max(source.last, ready)
            return self._new(size, ready)
        return _Value(size, ready, sources)

    def _passes(self, equation) -> bool:
        name = equation.primitive.name
        if name == "dot_general":  # an outer product
            (contracted, _), _ = equation.params["dimension_numbers"]
            return math.prod(equation.invars[0].aval.shape[d] for d in contracted) == 1
        return name in _PASSES
