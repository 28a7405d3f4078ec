"""Operations that are not PyTorch's own: what they give, and take, where they have no shape rule.

In this order: what the user told (--op-memory); the operation's own code for GPUs where that is Python, which is run, so that what it allocates is seen; its shape rule
(register_fake); its kernel for the host, asked with small inputs (learned_shapes.py). Where nothing of that is there the plan ends with a sentence.
"""

from __future__ import annotations

import functools
import re

import torch

from ...session.unplannable import Unplannable
from ..kernels import temporaries
from ..operations import learned_shapes
from ..operations.missing_shapes import returns_what_it_writes
from ..operations.outcome import Outcome
from ..release.older_torch import OutOfMemoryError
from ..tensors import loose_sizes, tensors
from ..tensors.naming import op_name
from . import value_sized_results

_PYTORCH = re.compile(
    r"aten|prims?|c10d|_c10d_functional|_?dtensor|quantized|_quantized|inductor|profiler|symm_mem|fsdp"
)
_GPU_KEYS = ("CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
_kernels: dict[tuple[str, str], object] = {}  # (operation with overload, dispatch key) → a Python function
# Sizes that values decide, and what is taken beside them: a bit for each pair of boxes, the order of their scores and the boxes in it.
_AT_MOST = {
    "torchvision::nms": lambda operands: (
        [((operands[0].size(0),), torch.int64)],
        operands[0].size(0) * (8 * -(-operands[0].size(0) // 64) + 8 + 4 * operands[0].element_size()),
    )
}
_cannot_run: set = set()  # operations whose Python code does not run without a GPU
RUN_OWN_CODE = {
    "bitsandbytes"
}  # libraries whose native functions do nothing here: their code tells more than their shape rules


@functools.lru_cache(maxsize=None)
def is_foreign(func) -> bool:
    return _PYTORCH.fullmatch(func.namespace) is None


def install() -> None:
    """Python functions that become kernels are remembered: the dispatcher does not give them back."""
    original = torch.library.Library.impl

    @functools.wraps(original)
    def impl(library, name, function, dispatch_key="", *args, **kwargs):
        result = original(library, name, function, dispatch_key, *args, **kwargs)
        if callable(function) and not isinstance(function, torch._ops.OpOverload):
            text = name if isinstance(name, str) else name._schema.name + "." + (name._schema.overload_name or "")
            text = text.rstrip(".")
            full = text if "::" in text else f"{library.ns}::{text}"
            _kernels[full, dispatch_key or library.dispatch_key] = function
        return result

    torch.library.Library.impl = impl


def _kernel_of(func):
    name = func.name()
    return next((_kernels[name, key] for key in _GPU_KEYS if (name, key) in _kernels), None)


def _has_shape_rule(func) -> bool:
    if not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "Meta"):
        return False
    try:
        from torch._library.custom_ops import OPDEFS
        from torch._library.utils import can_generate_trivial_fake_impl
    except ImportError:  # before 2.4
        return True
    definition = OPDEFS.get(func._schema.name)
    return definition is None or definition._abstract_fn is not None or can_generate_trivial_fake_impl(func)


def answer(dry, func, args, kwargs, operands):
    """The result; NotImplemented: its shape rule is to be asked."""
    told = dry.told_operations.get(op_name(func))
    if told is not None:
        return _as_told(dry, func, told, args, kwargs, operands)
    if op_name(func) in _AT_MOST:
        known = value_sized_results.from_values(dry, func, args, kwargs, operands)
        if known is not None:
            return known
        dry.notes.at_most(f"{op_name(func)} keeps as many as values say: all were counted, the most there can be")
        looks, scratch_bytes = _AT_MOST[op_name(func)](operands)
        with loose_sizes.made_with(dry.memory, looks[0][0][0]):
            return _make(dry, func, looks, operands, scratch_bytes)
    has_rule = _has_shape_rule(func)
    kernel = _kernel_of(func)
    if kernel is not None and func not in _cannot_run and (not has_rule or func.namespace in RUN_OWN_CODE):
        result = _run_kernel(dry, func, kernel, args, kwargs, has_rule)
        if result is not NotImplemented:
            return result
    if has_rule:
        dry.notes.add(
            "kernel",
            f"what {op_name(func)} takes beside its results is not known: its shape rule tells only those (--op-memory '{op_name(func)}=SIZE' says it)",
            group=op_name(func),
        )
        return NotImplemented
    looks = _from_host(func, args, kwargs)
    if looks is None:
        raise unknown(func)
    dry.notes.add(
        "kernel",
        f"{op_name(func)} has no shape rule: the sizes of its results are those of its kernel for the CPU, which was asked with small inputs; what it takes beside them is not known",
        group=op_name(func),
    )
    return _make(dry, func, [(size, dtype) for size, dtype in looks], operands, 0)


def unknown(func) -> Unplannable:
    name = op_name(func)
    text = f"{name} is not known to a dry run: PyTorch has no rule that tells its result's shape without running it"
    if is_foreign(func):
        text += (
            f" (it comes from the extension '{func.namespace}'; an extension can register one with torch.library.register_fake, "
            f"and --op-memory '{name}=SIZE,like=0' tells what it takes and gives)"
        )
    return Unplannable(text)


def _run_kernel(dry, func, kernel, args, kwargs, has_rule: bool):
    try:
        with torch._C._AutoDispatchBelowAutograd(), dry:
            result = kernel(*args, **kwargs)
    except (OutOfMemoryError, Unplannable):
        raise
    except Exception as problem:
        if not has_rule:
            raise
        _cannot_run.add(func)
        dry.notes.add(
            "kernel",
            f"the code of {op_name(func)} does not run without a GPU ({type(problem).__name__}): its shape rule was asked, and what it takes beside its results is not known",
            group=op_name(func),
        )
        return NotImplemented
    return result


def _from_host(func, args, kwargs):
    """((size, dtype), …) of the results, by the operation's kernel for the host."""
    has = functools.partial(torch._C._dispatch_has_kernel_for_dispatch_key, func.name())
    if (
        not has("CPU")
        and not has("CompositeExplicitAutograd")
        or any(a.alias_info is not None for a in func._schema.arguments)
    ):
        return None
    with torch.utils._python_dispatch._disable_current_modes():
        return learned_shapes.learn(func, args, kwargs)


def _make(dry, func, looks, operands, scratch_bytes: int):
    """Results of these looks, with so many bytes beside them while it runs."""
    made: list = []
    stack = dry.memory.stacks.here()
    outcome = Outcome.named(func, operands)

    def make():
        for size, dtype in looks:
            tensor = tensors.make(torch.Size(size), tensors.contiguous_stride(size), dtype)
            dry._born(tensor, outcome, stack)
            made.append(tensor)

    dry.take_steps([scratch_bytes, temporaries.OUT] if scratch_bytes else [temporaries.OUT], make, stack, outcome)
    for tensor in made:
        dry.values.assume(tensor)
    returns = func._schema.returns
    if not returns:
        return None
    return made[0] if len(returns) == 1 and str(returns[0].type) == "Tensor" else tuple(made)


# --- what the user told: {"scratch_bytes": N, "results": [{"like": 0}, {"shape": ["0.0", 128], "dtype": "float16"}]}


def _as_told(dry, func, told: dict, args, kwargs, operands):
    _say_told(dry, func)
    scratch = int(told.get("scratch_bytes") or 0)
    results = told.get("results") or []
    returns = func._schema.returns
    if not results and _has_shape_rule(func):
        dry.outcome(func, args, kwargs, operands).steps = [scratch, temporaries.OUT] if scratch else None
        return dry.run(func, args, kwargs, operands)
    rule = returns_what_it_writes(func) if not results else None
    if rule is not None:
        _make(dry, func, [], operands, scratch)
        return rule(*args, **kwargs)
    results = results or [{"like": 0}] * len(returns)
    if len(results) != len(returns):
        raise Unplannable(
            f"--op-memory tells {len(results)} result(s) of {op_name(func)}, which has {len(returns)}: {func._schema}"
        )
    return _make(dry, func, [_told_look(func, r, operands) for r in results], operands, scratch)


def make_told(dry, func, told: dict, results: list, operands):
    """Of a function that is no operator of PyTorch's."""
    _say_told(dry, func)
    looks = [_told_look(func, result, operands) for result in results]
    return _make(dry, func, looks, operands, int(told.get("scratch_bytes") or 0))


def _say_told(dry, func) -> None:
    dry.notes.add(
        "instead",
        f"{op_name(func)} was not run: it takes what --op-memory says",
        group=op_name(func),
        verdict="with sizes told by --op-memory",
    )


def _told_look(func, result: dict, operands):
    try:
        if "like" in result:
            tensor = operands[result["like"]]
            return tuple(tensor.size()), _dtype(result.get("dtype")) or tensor.dtype
        size = tuple(_told_size(part, operands) for part in result["shape"])
        return size, _dtype(result.get("dtype")) or operands[0].dtype
    except IndexError:
        raise Unplannable(
            f"--op-memory tells a size of {op_name(func)} by an operand or dimension that it does not have: its operands are {[tuple(t.size()) for t in operands]}"
        ) from None


def _told_size(part: str, operands) -> int:
    """A product of whole numbers and OPERAND.DIMENSION: "0.1", "2*0.1"."""
    size = 1
    for factor in str(part).split("*"):
        operand, dot, dim = factor.partition(".")
        size *= operands[int(operand)].size(int(dim)) if dot else int(factor)
    return size


def _dtype(name: str | None):
    return getattr(torch, name) if name else None


def told_operations(options: dict) -> dict:
    return {told["op"]: told for told in options.get("op_memory") or ()}
