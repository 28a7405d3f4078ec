"""A run of a graph before it runs: its operations in the order in which they were made, which is one in which they can run.

A result is taken when its operation comes, and given back after the last operation that uses it; what the graph returns is the caller's, and what it assigns to a variable stays. Functions that the
graph calls are walked through where they are called, loops round by round.
"""

from __future__ import annotations

import functools
import math
import os
import weakref
from collections import Counter

from ..._file_owner import is_library, is_own
from ...common import tensorflow_shapes as shapes
from ...common.holdings import Holding
from ..session.device import OutOfMemory
from ..session.estimates import size_from_values
from ..session.unplannable import Unplannable
from . import calls, cudnn_recurrent, left_out, operation_kinds, pipelines, ragged, tensor_lists
from .graph_facts import Facts, Prepared, Step

_NO_RESULT = frozenset(("Placeholder", "VarHandleOp", "VariableV2", "NoOp", "Arg"))
_REDUCTIONS = frozenset(("Sum", "Prod", "Max", "Min", "Mean"))
_NO_LAYER = ("gradient_tape", "gradients", "StatefulPartitionedCall", "PartitionedCall", "while", "cond")
AGAIN = "faultline_again/"  # before the names of a graph that is made again
_FEW_BYTES = 4096  # of a constant; what smaller ones keep is not the matter of a plan


class Walked:
    """What a walk found out, with those through the functions that are called."""

    def __init__(self):
        self.unknown: list[str] = []  # operations of which the sizes could not be told
        self.kept_in_loops: list[str] = []  # loops that keep something of each round, and have no end that is known
        self.most: set[str] = set()  # operations that were counted as large as they can be
        self.library: set[str] = set()  # kinds of operations beside which a library takes what is not known
        self.work = 0
        self.visits = 0
        self.runs_here = True  # all its operations can be computed on the CPU
        self.assigned: dict[int, object] = {}  # variables of the caller's that it assigns to
        self.iterators: list[tuple] = []  # of the caller's that it takes from, and the operations
        self.facts: Facts | None = None  # of the outermost graph

    def tell(self, session, what: str) -> None:
        """What of it could not be counted: then there is no verdict that it fits."""
        if self.unknown:
            count = len(self.unknown)
            Unplannable(
                f"{count} operation{'s' if count > 1 else ''} of {what} ha{'ve' if count > 1 else 's'} results whose sizes are not known before they run ({self.unknown[0]})"
            )
        if self.kept_in_loops:
            Unplannable(
                f"a loop inside {what} keeps something of each round, and how many rounds there are is not known before it runs ({self.kept_in_loops[0]})"
            )
        for name in sorted(self.most):
            session.notes.at_most(
                f"inside {what} sizes or rounds depend on numbers that a dry run does not compute ({name}): they were taken as the most there can be",
            )
        for name in sorted(self.library):
            session.notes.add(
                "kernel",
                f"what {name} take beside their results is by a model that was measured with PyTorch on an H200",
                "",
                verdict=f"with {name} by a model",
            )


class KeptByGraph:
    """What a graph keeps between its runs: its own variables' memory by their names, and its constants', which its compiled operations hold as long as there is the graph."""

    def __init__(self):
        self.variables: dict[str, Holding] = {}
        self.constants: dict[int, Holding] = {}  # by the ids of their tensors

    @staticmethod
    def of(session, graph) -> KeptByGraph:
        known = session.kept_by_graphs.get(graph)
        if known is None:
            known = session.kept_by_graphs[graph] = KeptByGraph()
            weakref.finalize(graph, known.let_go_of_constants, session).atexit = False
        return known

    def let_go_of_constants(self, session) -> None:
        for holding in self.constants.values():
            holding.let_go(session)
        self.constants.clear()


class Walk:
    """`given` are the caller's tensors by the ids of the graph's inputs; `kept` is what the outermost graph keeps."""

    def __init__(
        self, session, given: dict, kept: KeptByGraph, facts: Facts, outcome: Walked, elements, rounds: int = 1
    ):
        self.session, self.given, self.kept, self.facts = session, given, kept, facts
        self.outcome, self.elements, self.rounds = outcome, elements, rounds
        self.uses: Counter = Counter()  # to come, by the id of a tensor of the graph
        self.looked_at: set[int] = set()  # of which somebody asks the shape
        self.taken: dict[int, Holding] = {}
        self.lists: dict[int, tensor_lists.TensorList] = {}
        self.optionals: dict[int, list | None] = {}  # what iterators yielded, None: their end
        self._stack = session.here()

    def inside(self, given: dict, facts: Facts, rounds: int) -> Walk:
        """Of a graph that an operation of this one runs, so many times over."""
        return Walk(self.session, given, self.kept, facts, self.outcome, self.elements, self.rounds * rounds)

    def run(self, steps: list[Step], results, claim: bool = False) -> list:
        """Raises TensorFlow's own error where memory does not suffice; nothing is held then, nor afterwards but what is kept, and the results where they are claimed."""
        for step in steps:
            if step.kind in shapes.OF_SHAPES:  # runs as soon as there is a shape, and holds nothing
                self.looked_at.update(step.ids)
            else:
                self.uses.update(step.ids)
        self.uses.update(map(id, results))
        try:
            for step in steps:
                self._come_to(step)
            return [self._claim(tensor) for tensor in results] if claim else []
        finally:
            for holding in self.taken.values():
                holding.let_go(self.session)
            self.taken.clear()
            self.lists = {} if not claim else self.lists

    def _claim(self, tensor) -> Holding | None:
        holding = self.taken.get(id(tensor))
        if holding is None or shapes.is_brought_to_host(tensor.dtype.name, "_Retval"):
            return None
        holding.arrays += 1
        return holding

    def _come_to(self, step: Step) -> None:
        kind = step.kind
        self.outcome.visits += 1
        if kind in _NO_RESULT or (kind == "Const" and step.outputs[0].id in self.given):  # the caller gives it
            return
        if not step.on_host:
            self._bring_over(step)
        if not (
            calls.come_to(self, step)
            or pipelines.come_to(self, step)
            or tensor_lists.come_to(self, step)
            or cudnn_recurrent.come_to(self, step)
            or ragged.come_to(self, step)
        ):
            self._results(step)
            if kind in shapes.IN_SCRATCH and not step.on_host:
                self._work_in_scratch(step)
        if kind not in operation_kinds.OF_FUNCTIONS and not left_out.runs_here(kind):
            self.outcome.runs_here = False
        if left_out.changes(kind):
            self._changes(step)
        for key in step.ids if kind not in shapes.OF_SHAPES else ():
            self.uses[key] -= 1
            if self.uses[key] == 0:
                self.drop(key)

    def _bring_over(self, step: Step) -> None:
        """What operations on the host made is copied to the GPU for the first that uses it there."""
        made_by = Prepared.of(step.operation.graph).made_by
        for key, tensor in zip(step.ids, step.inputs):
            maker, at = made_by.get(key) or (None, 0)
            if maker is None or not maker.on_host or key in self.taken:
                continue
            dtype, shape = tensor.dtype.base_dtype, self.facts.shape(tensor)
            if shape is not None and shapes.is_on_gpu(dtype.name):
                self.taken[key] = self.take(shapes.bytes_of(shape, dtype), shape, dtype.name, maker)

    def _results(self, step: Step) -> None:
        self.facts.infer(step)
        if step.kind in shapes.SHARES:
            first = self.taken.get(step.ids[0]) if step.ids else None
            for out, key in zip(step.outputs, step.ids):
                if key in self.lists:
                    self.lists[out.id] = self.lists[key]
                    self.lists[key].is_shared = True
                holding = self.taken.get(key) if step.kind == "IdentityN" else first
                if shapes.is_brought_to_host(out.dtype_name, step.kind):
                    continue
                if holding is not None and self.uses[out.id]:
                    self.share_holding(holding, out)
            return
        for out in step.outputs:
            self.result(step, out, self._constant(step, out) or self._unreduced(step, out))

    def _work_in_scratch(self, step: Step) -> None:
        given, made = self.facts.shape(step.inputs[0]), self.facts.shape_of(step.outputs[0])
        held = []
        try:
            for shape in shapes.scratch_of(given, made):
                held.append(self.take(4 * math.prod(shape), shape, "float32", step))
        finally:
            for holding in held:
                holding.let_go(self.session)

    def _constant(self, step: Step, out) -> Holding | None:
        """It is made once, and lies there until the graph goes."""
        if step.kind != "Const" or not out.on_gpu or not self.uses[out.id]:
            return None
        known = self.kept.constants.get(out.id)
        if known is None:
            shape = self.facts.shape_of(out)
            size = shapes.bytes_of(shape, out.dtype) if shape is not None else 0
            if size > _FEW_BYTES:
                known = self.kept.constants[out.id] = self.take(size, shape, out.dtype_name, step)
        return known

    def _unreduced(self, step: Step, out) -> Holding | None:
        """A reduction that has nothing to reduce (gradients of shapes that are not told have many) returns what it is given."""
        if step.kind not in _REDUCTIONS or self.uses[out.id] == 0:
            return None
        shape, given = self.facts.shape_of(out), self.facts.shape(step.inputs[0])
        return self.taken.get(step.ids[0]) if shape and given and math.prod(shape) == math.prod(given) else None

    def result(self, step: Step, out, shared: Holding | None = None) -> None:
        """Memory for a result, in the place of an argument where TensorFlow would."""
        is_used = self.uses[out.id] > 0
        if not out.on_gpu or not (is_used or out.id in self.looked_at):
            return
        shape = self.facts.shape_of(out)
        if shape is None:
            self.outcome.unknown.append(f"{step.name}, {step.kind}")
            return
        self.outcome.work += self.rounds * _work(self.facts, step, shape)
        if step.kind in shapes.IN_PLACE:
            shared = shared or self._replaced(step, out, shape)
        if shared is not None:
            self.share_holding(shared, out)
        else:
            size = shapes.bytes_of(shape, out.dtype)
            if out.id in self.facts.loose:
                size = size_from_values(size)
            self.taken[out.id] = self.take(size, shape, out.dtype_name, step)
        if not is_used:
            self.drop(out.id)

    def _replaced(self, step: Step, out, shape) -> Holding | None:
        """The argument that nothing else uses, and whose place the result can take."""
        for key, tensor in zip(step.ids, step.inputs):
            holding = self.taken.get(key)
            if holding is None or holding.arrays != 1 or self.uses[key] != 1:
                continue
            if self.facts.shape(tensor) == shape and tensor.dtype.base_dtype == out.dtype:
                return holding
        return None

    # --- memory

    def take(self, size: int, shape, dtype: str, step: Step) -> Holding:
        session = self.session
        if step.label is None:
            step.label = _layer_of(step.name) or _line_of(step.operation)
        tensor = session.device.tensor(tuple(shape), dtype, step.kind, step.label or session.line_name())
        try:
            holding = Holding(session.take(size, self._stack, tensor))
        except OutOfMemory:
            raise session.out_of_memory(shape, dtype, step.name) from None
        holding.arrays = 1
        holding.bytes = size
        return holding

    def bring_in(self, tensor, shape) -> None:
        """What is fed."""
        dtype = tensor.dtype.base_dtype
        if shapes.is_on_gpu(dtype.name):
            step = Prepared.of(tensor.graph).step(tensor.op)
            self.taken[id(tensor)] = self.take(shapes.bytes_of(shape, dtype), shape, dtype.name, step)

    def share_holding(self, holding: Holding, out) -> None:
        holding.arrays += 1
        before, self.taken[out.id] = self.taken.get(out.id), holding
        if before is not None:
            before.let_go(self.session)

    def holding_of(self, tensor) -> Holding | None:
        return self.taken.get(id(tensor))

    def drop(self, key: int) -> None:
        self.lists.pop(key, None)
        holding = self.taken.pop(key, None)
        if holding is not None:
            holding.let_go(self.session)

    def hand_over(self, tensor) -> Holding | None:
        """To a function that is called: with its last use an argument is the function's own."""
        holding = self.taken.get(id(tensor))
        if holding is None:
            return None
        if self.uses[id(tensor)] == 1:
            return self.taken.pop(id(tensor))
        holding.arrays += 1
        return holding

    def take_again(self, before: dict[int, Holding], made_by: dict) -> None:
        """Arguments that a function took over and ended, for another that may have been called in its place."""
        again: dict[int, Holding] = {}  # by the id of the one that ended
        for key, holding in before.items():
            if key in self.taken:
                continue
            if holding.arrays == 0 and id(holding) not in again:
                step, at = made_by[key]
                out = step.outputs[at]
                again[id(holding)] = self.take(holding.bytes, self.facts.shape_of(out) or (), out.dtype_name, step)
                again[id(holding)].arrays = 0
            holding = again.get(id(holding), holding)
            holding.arrays += 1
            before[key] = self.taken[key] = holding

    # --- what stays

    def _changes(self, step: Step) -> None:
        resource = self.given.get(step.ids[0])
        if step.kind not in operation_kinds.ITERATES and resource is not None:
            self.outcome.assigned[id(resource)] = resource
        if step.kind in operation_kinds.ASSIGNS and len(step.inputs) > 1 and not step.on_host:
            self._keep(step)

    def _keep(self, step: Step) -> None:
        """A variable of the graph has it from now on, in the place of what it had."""
        from tensorflow.python.framework import ops

        holding = self.taken.get(step.ids[1])
        shared, resource = self.session.eager.shared, self.given.get(step.ids[0], step.inputs[0])
        name = None if isinstance(resource, ops.EagerTensor) else resource.op.name.removeprefix(AGAIN)
        # it is copied into the memory that is there
        if shared.has(resource) if name is None else name in self.kept.variables:
            return
        if holding is None:
            holding = self._of_caller(step.inputs[1]) or self._copied(step)
            if holding is None:
                return
        elif self.uses[step.ids[1]] > 1 or holding.arrays > 1:
            holding.arrays += 1
        else:
            del self.taken[step.ids[1]]
        if name is None:
            shared.set_variable(resource, holding)
            holding.let_go(self.session)
        else:
            self.kept.variables[name] = holding

    def _of_caller(self, value) -> Holding | None:
        """The caller's own tensor, whose memory the variable shares."""
        known = self.session.tensors.of(self.given.get(id(value)))
        if known is None or known.ended or not known.holding.allocation:
            return None
        known.holding.arrays += 1
        return known.holding

    def _copied(self, step: Step) -> Holding | None:
        """Of a value that is the caller's, or another variable's, a variable has a copy."""
        value = step.inputs[1]
        dtype, shape = value.dtype.base_dtype, self.facts.shape(value)
        if shape is None or not shapes.is_on_gpu(dtype.name):
            return None
        return self.take(shapes.bytes_of(shape, dtype), shape, dtype.name, step)


def _work(facts: Facts, step: Step, shape) -> int:
    elements = math.prod(shape)
    if step.kind in operation_kinds.MATRIX_PRODUCTS:
        first = facts.shape(step.inputs[0]) or (1,)
        return elements * max(first, default=1)
    if step.kind.startswith(operation_kinds.CONVOLUTIONS):
        return elements * 64
    return elements


@functools.lru_cache(maxsize=65536)
def _place(traceback) -> str:
    for frame in reversed(traceback):
        if not is_library(frame.filename) and not is_own(frame.filename):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return ""


@functools.lru_cache(maxsize=65536)
def _layer_of(name: str) -> str:
    """The layer that made it: functional_1.conv2d_2 of gradient_tape/functional_1/conv2d_2/Conv2DBackpropFilter; empty: none did."""
    words = [word for word in name.removeprefix(AGAIN).split("/")[:-1] if word not in _NO_LAYER]
    return ".".join(word.replace(".", "_") for word in words[:2])


def _line_of(operation) -> str:
    try:
        return _place(tuple(operation.traceback or ()))
    except (AttributeError, TypeError):
        return ""


def through(session, graph, operations, results, given: dict, facts: Facts, elements, fed=()) -> Walked:
    """A walk through a graph, with the sizes that its arguments have. `fed` are tensors of it that come from the host: each with its shape."""
    outcome = Walked()
    outcome.facts = facts
    steps = Prepared.of(graph).steps(operations)
    walk = Walk(session, given, KeptByGraph.of(session, graph), facts, outcome, elements)
    for tensor, shape in fed:
        walk.bring_in(tensor, shape)
    walk.run(steps, results)
    outcome.most |= facts.most
    return outcome
