"""What is known of a graph's tensors before it runs: shapes, and the numbers that shapes are made of.

A graph is traced once for batches of any size, so its own shapes are full of holes. A run of it has arguments, and with those most of the holes close: TensorFlow's own inference is asked for each
operation with the shapes that its arguments have in this run. Sizes that numbers decide (where, unique, non-maximum suppression) are taken as large as they can be, and that is noted.
"""

from __future__ import annotations

import math

import numpy as np

from ...common import tensorflow_shapes as shapes
from . import given_values, operation_kinds
from .given_values import GivenValues

_FEW = 64  # numbers that may be a shape
_DEEPEST = 20  # operations that are looked through
_told: dict = {}  # by operation, arguments' shapes and numbers: what TensorFlow's inference says
_NO_NUMBERS = frozenset("Placeholder PlaceholderV2 Arg ReadVariableOp VarHandleOp VariableV2 IteratorGetNext".split())
_SAME_NUMBERS = frozenset("Identity StopGradient PreventGradient EnsureShape Snapshot".split())


class Step:
    """An operation of a graph, with what is the same in each run."""

    __slots__ = ("operation", "kind", "name", "inputs", "ids", "outputs", "on_host", "label", "_key")

    def __init__(self, operation):
        self.operation, self.kind, self.name = operation, operation.type, operation.name
        self.inputs = tuple(operation.inputs)
        self.ids = tuple(map(id, self.inputs))
        self.on_host = "CPU" in (operation.device or "").upper()
        self.outputs = tuple(Out(tensor, self.kind, self.on_host) for tensor in operation.outputs)
        self.label = self._key = None

    @property
    def key(self):
        """What TensorFlow's inference depends on beside the arguments."""
        if self._key is None:
            node = self.operation.node_def
            attributes = sorted((n, v.SerializeToString()) for n, v in node.attr.items() if not n.startswith("_"))
            self._key = (self.kind, tuple(attributes))
        return self._key


class Out:
    """A result of an operation."""

    __slots__ = ("tensor", "id", "dtype", "dtype_name", "on_gpu", "shape")

    def __init__(self, tensor, kind: str, on_host: bool):
        self.tensor, self.id, self.dtype = tensor, id(tensor), tensor.dtype.base_dtype
        self.dtype_name = self.dtype.name
        self.on_gpu = not on_host and shapes.is_on_gpu(self.dtype_name, kind)
        shape = tensor.shape
        self.shape = tuple(shape.as_list()) if shape.rank is not None else None  # None in it: not known


class Prepared:
    """A graph's operations, each looked at once. It lies in the graph, and goes with it."""

    def __init__(self):
        self._steps: dict[int, Step] = {}
        self.made_by: dict[int, tuple[Step, int]] = {}  # a tensor's id → its operation, and which result it is
        self._orders: dict[tuple, list[Step]] = {}
        self._begun: set[int] = set()  # while they are put in order: a graph of version 1 may go round
        self.facts: dict = {}  # of runs, by what they were given

    @staticmethod
    def of(graph) -> Prepared:
        known = getattr(graph, "_faultline_prepared", None)
        if known is None:
            known = graph._faultline_prepared = Prepared()
        return known

    def step(self, operation) -> Step:
        known = self._steps.get(id(operation))
        if known is None or known.operation is not operation:
            known = self._steps[id(operation)] = Step(operation)
            for at, out in enumerate(known.outputs):
                self.made_by[out.id] = (known, at)
        return known

    def steps(self, operations) -> list[Step]:
        """In the order in which they were made, and each after what it takes: a loop's gradient gives the loop more arguments afterwards."""
        key = tuple(map(id, operations))
        known = self._orders.get(key)
        if known is None:
            known = self._orders[key] = self._in_order([self.step(operation) for operation in operations])
        return known

    def _in_order(self, steps: list[Step]) -> list[Step]:
        waiting = {id(step.operation): step for step in steps}
        ordered = []
        for first in steps:
            stack = [first]
            while stack:
                step = stack[-1]
                if id(step.operation) not in waiting:
                    stack.pop()
                    continue
                before = [waiting[id(t.op)] for t in step.inputs if id(t.op) in waiting and id(t.op) not in self._begun]
                self._begun.add(id(step.operation))
                if before:
                    stack += before
                    continue
                stack.pop()
                del waiting[id(step.operation)]
                ordered.append(step)
        self._begun.clear()
        return ordered


def arguments_of(step: Step) -> tuple:
    """What an operation that calls functions gives them."""
    return (
        step.inputs[1:] if step.kind in operation_kinds.BRANCHES or step.kind in operation_kinds.CASES else step.inputs
    )


class OtherFacts(Exception):
    """A run turns out to be given something else than the one that these facts are of."""


class Facts:
    """Of one run of a graph, or of all runs that are given the same. Numbers are looked for only where a size asks for them; `asked` are those that came from outside."""

    def __init__(self, prepared: Prepared, around: Facts | None = None):
        """around: those of the graph that calls the function, which are told what was counted as large as it can be."""
        self._prepared = prepared
        self.shapes: dict[int, tuple] = {}  # by the tensor's id
        self._numbers: dict = {}
        self._sources: dict = {}  # functions that tell an argument's numbers
        self._children: dict = {}
        self.values = GivenValues(self, prepared)
        self.asked: dict[int, tuple | None] = {}
        self._depends_on: dict[int, object] = {}  # by the tensor's id: the whole value that something was computed of
        self.most: set[str] = (
            set() if around is None else around.most
        )  # operations whose results were counted as large as they can be
        self.loose: set[int] = (
            set()
        )  # the ids of tensors that have these sizes or sizes that come of them: they may be smaller

    def shape(self, tensor) -> tuple | None:
        """All of it, or None."""
        known = self.shapes.get(id(tensor))
        if known is None and tensor.shape.is_fully_defined():
            known = self.shapes[id(tensor)] = shapes.dims(tensor)
        return known

    def shape_of(self, out: Out) -> tuple | None:
        known = self.shapes.get(out.id)
        return known if known is not None else out.shape if shapes.is_known(out.shape) else None

    def give(self, tensor, shape, numbers=None) -> None:
        """Of a result that something else than the graph tells."""
        if shape is not None:
            self.shapes[id(tensor)] = tuple(shape)
        if numbers is not None:
            self._numbers[id(tensor)] = numbers

    def give_outside(self, tensor, value, is_stand_in: bool, is_loose: bool = False) -> None:
        """Of an argument of the program's, or what an iterator of its yields: a tensor, with numbers unless it is a stand-in. Raises OtherFacts where these are those of another run."""
        shape = shapes.dims(value) if value.shape.is_fully_defined() else None
        key = id(tensor)
        if key in self.shapes and self.shapes[key] != shape:
            raise OtherFacts
        if key in self._depends_on and self._depends_on[key] != (not is_stand_in and given_values.key_of(value)):
            raise OtherFacts
        if not is_stand_in:
            self.values.give(tensor, value)
        if shape is not None:
            self.shapes[key] = shape
        if is_loose:
            self.loose.add(key)
        few = not is_stand_in and shape is not None and math.prod(shape) <= _FEW and shapes.is_plain(value.dtype)

        def read():
            return np.asarray(value.numpy()) if few else None

        def numbers():
            found = read()
            self.asked[key] = _key_of(found)
            return found

        if key in self.asked and self.asked[key] != _key_of(read()):
            raise OtherFacts
        self._sources[key] = numbers

    def follow(self, tensor, other: Facts, there) -> None:
        """It is what `there` is in other facts."""
        shape = other.shape(there)
        if shape is not None:
            self.shapes[id(tensor)] = shape
        if id(there) in other.loose:
            self.loose.add(id(tensor))
        self._sources[id(tensor)] = lambda: other.numbers(there)
        self.values.follow(tensor, other.values, there)

    def follow_ways(self, tensor, ways: list) -> None:
        """It is what one of them makes, in facts of its own: its numbers are known where all agree."""

        def numbers():
            found = [facts.numbers(there) for facts, there in ways]
            return found[0] if len(set(map(_key_of, found))) == 1 else None

        self._sources[id(tensor)] = numbers
        self.values.forget(tensor)

    def depend_on(self, tensor, value) -> bool:
        """What is known of this run is known of those that are given the same."""
        if not given_values.can_be_read(value):
            return False
        if value.dtype.name != "resource":
            self._depends_on[id(tensor)] = given_values.key_of(value) or object()
        return True

    def child(self, step: Step, role: str, graph) -> Facts:
        """Of a function that the operation calls."""
        key = (id(step.operation), role)
        known = self._children.get(key)
        if known is None:
            known = self._children[key] = Facts(Prepared.of(graph), self)
            for tensor, outer in zip(graph.inputs, arguments_of(step)):
                known.follow(tensor, self, outer)
        return known

    def let_go(self) -> None:
        """What a run was given is not held for the next."""
        self._sources.clear()
        self._let_go_of_values()

    def _let_go_of_values(self) -> None:
        self.values.let_go()
        for child in self._children.values():
            child._let_go_of_values()

    # --- numbers

    def numbers(self, tensor):
        """The numbers of a small tensor where they follow from shapes and constants, else None."""
        key = id(tensor)
        if key not in self._numbers:
            self._numbers[key] = None  # while it is looked for
            self._numbers[key] = self._numbers_of(tensor)
            if self._numbers[key] is None and self._may_be_numbers(tensor):
                self._numbers[key] = self._computed(tensor)
        return self._numbers[key]

    def _numbers_of(self, tensor):
        if not self._may_be_numbers(tensor):
            return None
        step, at = self._prepared.made_by.get(id(tensor)) or (None, 0)
        if id(tensor) in self._sources:
            return self._sources[id(tensor)]()
        if step is None or step.kind in _NO_NUMBERS:
            return None
        if step.kind in _SAME_NUMBERS:
            return self.numbers(step.inputs[0])
        if step.kind in shapes.OF_SHAPES:
            return self._numbers_of_shape(step, at)
        if step.kind == "VariableShape":
            shape = shapes.shape_behind(step.inputs[0])
            return None if shape is None else np.array(shape, step.outputs[0].dtype.as_numpy_dtype)
        if step.kind == "Const":
            from tensorflow.python.framework import tensor_util

            return tensor_util.MakeNdarray(step.operation.get_attr("value"))
        if step.operation.op_def.is_stateful:
            return None
        try:
            given = [self.numbers(one) for one in step.inputs]
        except RecursionError:
            return None
        if any(numbers is None for numbers in given):
            return None
        told = self._ask(step, given, True)
        return told[at][2] if told is not None else None

    def _computed(self, tensor):
        value = self.values.of(tensor)
        return None if value is None else np.asarray(value.numpy())

    def _may_be_numbers(self, tensor) -> bool:
        shape = self.shape(tensor)
        return shapes.is_plain(tensor.dtype.base_dtype) and shape is not None and math.prod(shape) <= _FEW

    def _numbers_of_shape(self, step: Step, at: int):
        shape = self.shape(step.inputs[at])
        if shape is None:
            return None
        answers = {"Size": lambda: math.prod(shape), "Rank": lambda: len(shape)}
        return np.array(answers.get(step.kind, lambda: shape)(), step.outputs[at].dtype.as_numpy_dtype)

    # --- shapes

    def infer(self, step: Step) -> None:
        """The shapes of its results that the graph does not tell."""
        if not self.loose.isdisjoint(step.ids):
            self.loosen(step)
        if all(self.shape_of(out) is not None for out in step.outputs):
            return
        given = [self.numbers(one) if one.dtype.base_dtype.is_integer else None for one in step.inputs]
        told = self._ask(step, given, bool(given) and all(numbers is not None for numbers in given))
        for at, out in enumerate(step.outputs):
            if told is not None and shapes.is_known(told[at][0]):
                self.shapes[out.id] = told[at][0]
        if any(self.shape_of(out) is None for out in step.outputs):
            for out, value in zip(step.outputs, self.values.results_of(step) or ()):
                self.shapes[out.id] = shapes.dims(value)
        if any(self.shape_of(out) is None for out in step.outputs) and step.kind in _MOST:
            for out, shape in zip(step.outputs, _MOST[step.kind](self, step)):
                if shape is not None and self.shape_of(out) is None:
                    self.shapes[out.id] = shape
                    self.most.add(step.name)
                    self.loose.add(out.id)

    def loosen(self, step: Step) -> None:
        """An argument may be smaller: so may results be whose shape the graph does not tell, and numbers that may be somebody's shape."""
        for out in step.outputs:
            known = shapes.is_known(out.shape)
            if not known or (out.dtype.is_integer and math.prod(out.shape) <= _FEW):
                self.loose.add(out.id)

    def most_true(self, tensor, depth: int = 0) -> int:
        """No more of its elements can be other than zero: where few were put into many, few are."""
        everything = math.prod(self.shape(tensor) or (0,))
        step, _ = self._prepared.made_by.get(id(tensor)) or (None, 0)
        if step is None or depth > _DEEPEST or any(self.shape(one) is None for one in step.inputs):
            return everything
        if step.kind in ("Identity", "Cast", "Reshape", "Squeeze", "ExpandDims", "LogicalAnd"):
            return min(everything, self.most_true(step.inputs[0], depth + 1))
        if step.kind in ("LogicalOr", "AddV2", "Maximum"):
            return min(everything, sum(self.most_true(one, depth + 1) for one in step.inputs))
        if step.kind == "ScatterNd":
            return min(everything, math.prod(self.shape(step.inputs[1])))
        return everything

    def _ask(self, step: Step, given: list, with_numbers: bool):
        """TensorFlow's inference; None: it does not say."""
        from tensorflow.python.framework import op_def_registry

        arguments, handles = [], []
        for tensor, numbers in zip(step.inputs, given):
            handles.append(shapes.handle_of(tensor) if tensor.dtype.base_dtype.name == "resource" else None)
            shape = self.shape(tensor)
            if shape is None and tensor.shape.rank is not None:
                shape = tuple(tensor.shape.as_list())
            arguments.append((tensor.dtype.base_dtype, shape, numbers))
        resources = tuple(handle and handle.SerializeToString() for handle in handles)
        key = (step.key, with_numbers, tuple((t, s, _key_of(n)) for t, s, n in arguments), resources)
        if key not in _told:
            if len(_told) > 50000:
                _told.clear()
            definition = op_def_registry.get(step.kind)
            try:
                _told[key] = definition and shapes.of_node(definition, _node(step), arguments, with_numbers, handles)
            except Exception:  # whatever does not hold is for the operation itself to say
                _told[key] = None
        return _told[key]


def _key_of(numbers):
    return None if numbers is None else (numbers.shape, numbers.tobytes())


def _node(step: Step):
    """The operation alone: without where it is, and what it waits for."""
    from tensorflow.core.framework import node_def_pb2

    node = node_def_pb2.NodeDef(op=step.kind, name="asked")
    for name, value in step.operation.node_def.attr.items():
        if not name.startswith("_"):
            node.attr[name].CopyFrom(value)
    return node


# --- the most that results can have whose sizes their numbers decide


def _where(facts: Facts, step: Step):
    shape = facts.shape(step.inputs[0])
    return [None if shape is None else (facts.most_true(step.inputs[0]), len(shape))]


def _unique(facts: Facts, step: Step):
    """As many as there are, along the axis where one is named."""
    shape = facts.shape(step.inputs[0])
    return [shape, *[(math.prod(shape),) if shape is not None else None] * (len(step.outputs) - 1)]


def _suppressed(facts: Facts, step: Step):
    boxes, most = facts.shape(step.inputs[0]), facts.numbers(step.inputs[2])
    if boxes is None:
        return [None] * len(step.outputs)
    count = min(boxes[0], int(most)) if most is not None else boxes[0]
    return [(count,) if len(out.shape or ()) == 1 else () for out in step.outputs]


def _partitioned(facts: Facts, step: Step):
    data, places = facts.shape(step.inputs[0]), facts.shape(step.inputs[1])
    if data is None or places is None:
        return [None] * len(step.outputs)
    return [(math.prod(places), *data[len(places) :])] * len(step.outputs)


def _listed_difference(facts: Facts, step: Step):
    return [facts.shape(step.inputs[0])] * len(step.outputs)


_MOST = {
    "Where": _where,
    "Unique": _unique,
    "UniqueV2": _unique,
    "UniqueWithCounts": _unique,
    "UniqueWithCountsV2": _unique,
    **dict.fromkeys(
        (
            "NonMaxSuppression",
            "NonMaxSuppressionV2",
            "NonMaxSuppressionV3",
            "NonMaxSuppressionV4",
            "NonMaxSuppressionV5",
        ),
        _suppressed,
    ),
    "DynamicPartition": _partitioned,
    "ListDiff": _listed_difference,
}
