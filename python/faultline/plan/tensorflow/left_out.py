"""What a graph that is not computed would have changed: variables have a value afterwards, iterators are one further on, results have their shapes.

Else the program, which is in order, would fail at a variable without a value, or take from an iterator for ever.
"""

from __future__ import annotations

import functools

from ...common import tensorflow_shapes as shapes
from ...common.holdings import zeros
from ...common.stacks import user_line
from .operation_kinds import ASSIGNS, ASSIGNS_MORE, CALLS, ITERATES, LOOPS, NEXT_IF_ANY

MOST_WORK = 1 << 27  # elements and multiplications; more are not computed
_ASSIGNS = (*ASSIGNS, *ASSIGNS_MORE)
_RETURNS = {**LOOPS, **CALLS}
_MOST_BYTES = 256 << 20  # of a variable of a session that is made for real, where TensorFlow copies


def changes(kind: str) -> bool:
    return (
        kind in _ASSIGNS or kind in ITERATES or kind.startswith(("ResourceApply", "ResourceSparse", "ResourceScatter"))
    )


@functools.lru_cache(maxsize=4096)
def runs_here(kind: str) -> bool:
    """Operations that only a GPU has (CudnnRNNV3) cannot be computed on the CPU."""
    from tensorflow.python.framework import kernels

    return bool(kernels.get_registered_kernels_for_op(kind).kernel)


def results_told(outputs, facts) -> list | None:
    """For each result its shape and type, or the list of those that an optional value has; None: they cannot be made by hand."""
    told = []
    for tensor in outputs:
        shape = facts.shape(tensor)
        if shape is not None and shapes.is_plain(tensor.dtype.base_dtype):
            told.append((shape, tensor.dtype.base_dtype))
            continue
        operation = _maker_of(tensor)
        if operation is None or operation.type != "OptionalFromValue":
            return None
        parts = results_told(operation.inputs, facts)
        if parts is None or any(isinstance(part, list) for part in parts):
            return None
        told.append(parts)
    return told


def _maker_of(tensor):
    """The operation that made it, also inside a function or the last round of a loop; None: it is not found."""
    operation = tensor.op
    while True:
        if operation.type == "Identity":
            tensor = operation.inputs[0]
        elif (role := _RETURNS.get(operation.type)) is not None:
            try:
                inside = operation.graph._get_function(operation.get_attr(role).name).graph
            except (AttributeError, ValueError, KeyError):
                return None
            tensor = inside.outputs[tensor.value_index]
        else:
            return operation
        operation = tensor.op


def leave_out(session, walk, told: list) -> list:
    """The results of a traced function that is not computed. Raises what an iterator at its end raises."""
    from tensorflow.python.ops import gen_dataset_ops, gen_optional_ops

    eager = session.eager
    for resource, operation in walk.iterators:
        if resource is not None:
            is_optional = operation.type == NEXT_IF_ANY
            take = gen_dataset_ops.iterator_get_next_as_optional if is_optional else gen_dataset_ops.iterator_get_next
            kinds, sizes = operation.get_attr("output_types"), operation.get_attr("output_shapes")
            eager.unwatched(take, resource, kinds, sizes)
    for resource in walk.assigned.values():
        eager.give_value(resource)
    if walk.assigned or walk.iterators:
        session.left_out_line = user_line()
    results = []
    for one in told:
        if isinstance(one, list):
            parts = [eager.stand_in(*part) for part in one]
            results.append(eager.unwatched(gen_optional_ops.optional_from_value, parts))
        else:
            results.append(eager.stand_in(*one))
    return results


def initialise(session, of, run, operations) -> None:
    """The variables of a session's graph that a run which is not computed would have given their first value."""
    known = session.graphs_left_out.setdefault(of.graph, set())
    session.left_out_line = user_line()
    for operation in operations:
        if operation.type not in ASSIGNS or operation.inputs[0].op.name in known:
            continue
        value = operation.inputs[1]
        known.add(operation.inputs[0].op.name)
        if not value.shape.is_fully_defined() or not shapes.is_plain(value.dtype.base_dtype):
            continue
        size = shapes.bytes_of(shapes.dims(value), value.dtype.base_dtype)
        if operation.type == "AssignVariableOp" or size <= _MOST_BYTES:
            given = zeros(shapes.dims(value), value.dtype.base_dtype.as_numpy_dtype)
            session.eager.unwatched(run, of, operation, {value: given})
