"""Constants of compiled functions: arrays that a function closes over instead of getting them as arguments.

XLA writes them into the compiled program, and the driver loads it with them when it is called for the first time: they lie beside the pool, every compiled program (every shape that a function is
called with) has a copy of its own, and the array that was closed over stays where it is. They go with the compiled program. What is the same value everywhere is no memory, and what is
computed of constants alone is computed while compiling; then its result is what is kept.
"""

from __future__ import annotations

import ctypes

import numpy as np

from . import jaxpr_cost

SMALLEST_BYTES = 4096  # less is left in the program
_LARGEST_FOLDED = 45_000_000  # elements: XLA computes no larger constants
_LOOKED_AT = 1 << 20  # elements at a time
_LEFT_ALONE = set(
    "rng_bit_generator random_bits random_seed random_wrap threefry2x32 custom_call pure_callback io_callback debug_callback iota".split()
)
_CALLS = ("jit", "pjit", "closed_call", "core_call")


def bytes_of(value) -> int:
    return int(getattr(value, "nbytes", 0) or 0)


def is_same_everywhere(array) -> bool:
    """An array of the host's, or of JAX's on this machine, which is not asked: that would be a reading of the program's."""
    if isinstance(array, np.ndarray):
        values = np.ascontiguousarray(array)
    else:
        array.block_until_ready()
        memory = (ctypes.c_char * array.nbytes).from_address(array.unsafe_buffer_pointer())
        values = np.frombuffer(memory, np.uint8)
    each = values.view(np.uint8).reshape(-1, array.dtype.itemsize)
    return all(bool((each[at : at + _LOOKED_AT] == each[0]).all()) for at in range(0, len(each), _LOOKED_AT))


def value_of(array):
    """Of what is the same everywhere. A stand-in has zeros."""
    if isinstance(array, np.ndarray):
        return array.reshape(-1)[0]
    memory = (ctypes.c_char * array.dtype.itemsize).from_address(array.unsafe_buffer_pointer())
    return np.frombuffer(bytes(memory), array.dtype)[0]


class Constants:
    """Of one function. least, bytes, most: what they take, beside which compiled program; what XLA folds is not known for sure."""

    def __init__(self, jaxpr, is_uniform):
        found = {id(value): value for value in _constants_in(jaxpr) if bytes_of(value) >= SMALLEST_BYTES}
        self.uniform = {key: value for key, value in found.items() if is_uniform(value)}
        self.arrays = {key: value for key, value in found.items() if key not in self.uniform}
        self.elements = sum(value.size for value in self.arrays.values())
        as_given = sum(map(bytes_of, self.arrays.values()))
        self.host_bytes = sum(bytes_of(value) for value in self.arrays.values() if isinstance(value, np.ndarray))
        folded = _Folding(self).bytes_of(jaxpr) if self.arrays else 0
        self.bytes = folded
        self.least, self.most = min(folded, as_given), max(folded, as_given)

    def let_go(self) -> None:
        self.arrays, self.uniform = {}, {}

    def function(self, jaxpr):
        """The function with its constants as further arguments, behind its own, and the shapes of those."""
        lifted = list(self.arrays)
        if not lifted and not self.uniform:
            from jax._src import core

            return lambda *arguments: core.jaxpr_as_fun(jaxpr)(*arguments), []

        def function(*arguments):
            own, given = arguments[: len(arguments) - len(lifted)], arguments[len(arguments) - len(lifted) :]
            return _evaluate(jaxpr, {**self._broadcasts(), **dict(zip(lifted, given))}, own)

        return function, [(value.shape, value.dtype) for value in self.arrays.values()]

    def _broadcasts(self) -> dict:
        import jax.numpy as jnp

        return {key: jnp.full(v.shape, value_of(v), v.dtype) for key, v in self.uniform.items()}


def _constants_in(jaxpr):
    yield from getattr(jaxpr, "consts", ())
    for equation in jaxpr_cost.bare(jaxpr).eqns:
        for inner in jaxpr_cost.inner_of(equation.params):
            yield from _constants_in(inner)


def _evaluate(jaxpr, known: dict, arguments):
    """As JAX evaluates it, with constants taken from `known` by their id."""
    bare = jaxpr_cost.bare(jaxpr)
    values = dict(zip(bare.constvars, (known.get(id(value), value) for value in getattr(jaxpr, "consts", ()))))
    values.update(zip(bare.invars, arguments))

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]

    for equation in bare.eqns:
        given = [read(atom) for atom in equation.invars]
        inner = equation.params.get("jaxpr")
        if equation.primitive.name in _CALLS and any(id(value) in known for value in _constants_in(inner or bare)):
            results = _evaluate(inner, known, given)
        else:
            bound = equation.primitive.get_bind_params(equation.params)
            subfunctions, bound = bound if isinstance(bound, tuple) else ((), bound)
            results = equation.primitive.bind(*subfunctions, *given, **bound)
            results = results if equation.primitive.multiple_results else [results]
        values.update(zip(equation.outvars, results))
    return [read(atom) for atom in bare.outvars]


class _Folding:
    """What is kept of constants when everything that is computed of them alone is computed while compiling."""

    def __init__(self, constants: Constants):
        self._constants = constants
        self._kept: dict[int, int] = {}  # bytes, by what it is

    def bytes_of(self, jaxpr) -> int:
        self._outputs(jaxpr, [None] * len(jaxpr_cost.bare(jaxpr).invars), True)
        return sum(self._kept.values())

    def _outputs(self, jaxpr, arguments: list, is_outermost: bool) -> list:
        """Of each variable: None (it is computed at run time), or its name among constants and its bytes (0: the same everywhere)."""
        bare, given = jaxpr_cost.bare(jaxpr), self._constants
        known = dict(zip(bare.invars, arguments))
        for variable, value in zip(bare.constvars, getattr(jaxpr, "consts", ())):
            known[variable] = (id(value), bytes_of(value) if id(value) in given.arrays else 0)

        def read(atom):
            return (id(atom), 0) if hasattr(atom, "val") else known.get(atom)

        for equation in bare.eqns:
            operands = [read(atom) for atom in equation.invars]
            if equation.primitive.name in _CALLS and "jaxpr" in equation.params:
                results = self._outputs(equation.params["jaxpr"], operands, False)
            elif all(operands) and self._folds(equation):
                same = not any(size for _, size in operands)
                results = [(id(v), 0 if same else _size(v.aval)) for v in equation.outvars]
            else:
                for operand in filter(None, operands):
                    self._kept[operand[0]] = operand[1]
                results = [None] * len(equation.outvars)
            known.update(zip(equation.outvars, results))
        results = [read(atom) for atom in bare.outvars]
        for result in filter(None, results if is_outermost else ()):
            self._kept[result[0]] = result[1]
        return results

    def _folds(self, equation) -> bool:
        if equation.primitive.name in _LEFT_ALONE or list(jaxpr_cost.inner_of(equation.params)):
            return False
        return all(jaxpr_cost.elements_of(v.aval) <= _LARGEST_FOLDED for v in (*equation.invars, *equation.outvars))


def _size(aval) -> int:
    return jaxpr_cost.elements_of(aval) * np.dtype(getattr(aval, "dtype", np.uint8)).itemsize
