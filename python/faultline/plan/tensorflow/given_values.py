"""Values inside a graph that follow from what its run is given, computed operation by operation where a size depends on them: words of a text, ends of rows, what a mask leaves.

Only what is needed is computed, of arguments that are not large, on this machine's CPU. What variables have takes no part: in a dry run they may have no values.
"""

from __future__ import annotations

import math

import numpy as np

from ...common import tensorflow_shapes as shapes

_MOST = 1 << 20  # elements
_READ_ONLY = frozenset(("LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2"))


class GivenValues:
    """Of one run of a graph; `facts` are those of the run."""

    def __init__(self, facts, prepared):
        self._facts, self._prepared = facts, prepared
        self._given: dict = {}  # by the tensor's id: what came from outside
        self._followed: dict = {}  # by the tensor's id: the values in which it is another tensor
        self._known: dict = {}

    def give(self, tensor, value) -> None:
        self._given[id(tensor)] = value

    def follow(self, tensor, other: GivenValues, there) -> None:
        self._followed[id(tensor)] = other, there

    def forget(self, tensor) -> None:
        self._followed.pop(id(tensor), None)
        self._known[id(tensor)] = None

    def let_go(self) -> None:
        self._given.clear()
        self._known.clear()

    def of(self, tensor):
        """An eager tensor, or None."""
        key = id(tensor)
        if key not in self._known:
            self._known[key] = None  # while it is looked for
            self._known[key] = self._of(tensor)
        return self._known[key]

    def _of(self, tensor):
        key = id(tensor)
        if key in self._given:
            value = self._given[key]
            return _eager(value) if self._facts.depend_on(tensor, value) else None
        if key in self._followed:
            other, there = self._followed[key]
            return other.of(there)
        step, at = self._prepared.made_by.get(key) or (None, 0)
        results = self.results_of(step) if step is not None else None
        return results[at] if results is not None else None

    def results_of(self, step) -> list | None:
        """What the operation returns."""
        key = id(step)
        if key not in self._known:
            self._known[key] = None
            try:
                self._known[key] = self._computed(step)
            except RecursionError:
                pass
        return self._known[key]

    def _computed(self, step) -> list | None:
        from tensorflow.python.framework import tensor_util

        if step.kind == "Const":
            value = step.operation.get_attr("value")
            return [_eager(tensor_util.MakeNdarray(value))] if _elements(value.tensor_shape) <= _MOST else None
        if not self._can_be_computed(step):
            return None
        inputs = []
        for tensor in step.inputs:
            value = self.of(tensor)
            if value is None:
                return None
            inputs.append(value)
        if step.kind == "Identity":
            return inputs
        return _execute(step, inputs)

    def _can_be_computed(self, step) -> bool:
        if not step.inputs or (step.operation.op_def.is_stateful and step.kind not in _READ_ONLY):
            return False
        if any(attribute.type in ("func", "list(func)") for attribute in step.operation.op_def.attr):
            return False
        for out in step.outputs:
            shape = self._facts.shape_of(out)
            if shape is not None and math.prod(shape) > _MOST:
                return False
        return True


def _eager(value):
    """As an operation takes it; what is fed to a session is an array."""
    import tensorflow as tf
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops

    if isinstance(value, ops.EagerTensor):
        return value
    with context.eager_mode(), tf.device("/CPU:0"):
        return tf.constant(value if isinstance(value, np.ndarray) else value.numpy(), value.dtype)


def _elements(shape) -> int:
    return math.prod(side.size for side in shape.dim)


def _execute(step, inputs: list) -> list | None:
    import tensorflow as tf
    from tensorflow.python.eager import context, execute

    attributes: list = []
    for attribute in step.operation.op_def.attr:
        value = step.operation.get_attr(attribute.name)
        attributes += [attribute.name, [*map(_argument, value)] if isinstance(value, list) else _argument(value)]
    try:
        with context.eager_mode(), tf.device("/CPU:0"):
            made = execute.execute(step.kind, len(step.outputs), inputs, tuple(attributes), context.context())
    except Exception:  # for the operation itself to say
        return None
    return list(made)


def _argument(value):
    import tensorflow as tf
    from tensorflow.core.framework import tensor_shape_pb2

    if isinstance(value, tf.DType):
        return value.as_datatype_enum
    return tf.TensorShape(value) if isinstance(value, tensor_shape_pb2.TensorShapeProto) else value


def key_of(value) -> tuple | None:
    """By which two values are told apart; None: it cannot be."""
    if not shapes.is_plain(value.dtype) and value.dtype.name != "string":
        return None
    numbers = np.asarray(value.numpy())
    return numbers.shape, tuple(numbers.reshape(-1).tolist()) if numbers.dtype == object else numbers.tobytes()


def can_be_read(value) -> bool:
    return value.dtype.name in ("resource", "variant") or (value.shape.num_elements() or 0) <= _MOST
