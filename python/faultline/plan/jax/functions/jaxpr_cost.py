"""How much work a traced function is, and what kind: from its equations alone."""

from __future__ import annotations

import math
import re

# XLA makes one kernel of any number of these, and keeps nothing beside the results.
FUSES = set(
    "add sub mul div rem neg sign abs max min exp exp2 log log1p expm1 tanh sin cos logistic sqrt rsqrt cbrt square pow integer_pow erf erf_inv floor ceil round clamp nextafter "
    "convert_element_type bitcast_convert_type broadcast_in_dim reshape squeeze expand_dims iota slice dynamic_slice transpose rev select_n pad concatenate copy copy_p "
    "eq ne lt le gt ge and or xor not shift_left shift_right_logical shift_right_arithmetic is_finite stop_gradient real imag complex conj population_count clz "
    "random_wrap random_unwrap".split()
)
_MOST_FUSED = 16
_ROUNDS_OF_WHILE = 64  # of a loop whose end is not known
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr", "body_jaxpr", "cond_jaxpr", "branches")


def bare(jaxpr):
    """The jaxpr itself, where it comes with its constants."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def _inner(params: dict):
    for name in _INNER:
        value = params.get(name)
        for each in value if isinstance(value, (tuple, list)) else (value,):
            if each is not None and hasattr(bare(each), "eqns"):
                yield name, each


def inner_of(params: dict):
    """The jaxprs of an equation."""
    return (each for _, each in _inner(params))


def elements_of(aval) -> int:
    shape = getattr(aval, "shape", None)
    if shape is None:
        return 0
    return math.prod(d if isinstance(d, int) else 1 for d in shape)


def kind_of_array(aval) -> tuple:
    """Its shape and type: a result can take the place of an argument of its kind."""
    return getattr(aval, "shape", None), str(getattr(aval, "dtype", ""))


def cost_of(jaxpr) -> int:
    """About so many elements are read and written, a product of matrices counted with its multiplications."""
    total = 0
    for equation in bare(jaxpr).eqns:
        name, params = equation.primitive.name, equation.params
        inner = [(part, cost_of(each)) for part, each in _inner(params)]
        if inner:
            rounds = params["length"] if name == "scan" else _ROUNDS_OF_WHILE if name == "while" else 1
            total += rounds * sum(cost for _, cost in inner)
        out = sum(elements_of(v.aval) for v in equation.outvars)
        if name == "dot_general":
            (contracted, _), _ = params["dimension_numbers"]
            out *= max(1, math.prod(equation.invars[0].aval.shape[d] for d in contracted))
        elif name == "conv_general_dilated":
            out *= max(1, elements_of(equation.invars[1].aval) // max(1, max(equation.invars[1].aval.shape)))
        elif name in ("sort", "fft", "eigh", "svd", "cholesky", "lu", "qr", "cumsum", "triangular_solve"):
            out *= 16
        total += out
    return total


def has(jaxpr, primitive: str) -> bool:
    return any(
        equation.primitive.name == primitive or any(has(each, primitive) for _, each in _inner(equation.params))
        for equation in bare(jaxpr).eqns
    )


def _equations(jaxpr):
    for equation in bare(jaxpr).eqns:
        inner = list(_inner(equation.params))
        if equation.primitive.name in ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call") and inner:
            for _, each in inner:
                yield from _equations(each)
        else:
            yield equation.primitive.name


def is_one_kernel(jaxpr) -> bool:
    """Nothing is kept beside the results."""
    names = []
    for name in _equations(jaxpr):
        names.append(name)
        if name not in FUSES or len(names) > _MOST_FUSED:
            return False
    return True


def is_broadcast(jaxpr) -> bool:
    """jnp.ones and its like: one number, everywhere."""
    names = list(_equations(jaxpr))
    return names == ["broadcast_in_dim"] and all(not getattr(v.aval, "shape", ()) for v in bare(jaxpr).invars)


def names_of_arguments(jaxpr) -> list[str]:
    """For each argument the name of the Python argument that it is a part of: params of params['w'][0]."""
    names = getattr(getattr(jaxpr, "debug_info", None), "arg_names", None) or ()
    return [(re.match(r"\w+", str(name or "")) or [""])[0] for name in names]
