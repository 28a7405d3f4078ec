"""Graphs: a traced tf.function, or what a session is asked for.

The operations are gone through in the order in which they were made, which is one in which they can run. A result is taken when its operation comes, and given back after the last operation that
uses it; what the graph returns is the caller's, and what it assigns to a variable stays. Large graphs are not computed.
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
from .. import stand_in_reads
from ..device import OutOfMemory
from . import left_out

# Operations that are functions, and the attributes that name them.
_CALLS = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), ("f",)),
    **dict.fromkeys(("While", "StatelessWhile"), ("cond", "body")),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
}
_ROUNDS = 8  # of a loop whose end is not known, for how much work it is
_MOST_WORK = 1 << 27  # elements and multiplications; more are not computed
_NO_RESULT = ("Placeholder", "VarHandleOp", "VariableV2", "NoOp", "Arg")
_ASSIGNS = ("AssignVariableOp", "Assign")
_NO_LAYER = ("gradient_tape", "gradients", "StatefulPartitionedCall", "PartitionedCall", "while", "cond")
_AGAIN = "faultline_again/"  # before the names of a graph that is made again


class Walk:
    """One run of a graph. `given` are the caller's tensors by the ids of the graph's inputs; `variables` are what the graph's own have taken, by name."""

    def __init__(self, session, name: str, given: dict, variables: dict):
        self._session, self._name = session, name
        self._given, self._variables = given, variables
        self._stack = session.here()
        self._taken: dict[int, Holding] = {}  # by the id of a tensor of the graph
        self.unknown: list[str] = []
        self.kept_in_loops: list[str] = []  # lists that loops fill, of a length that is not known
        self.work = 0
        self.runs_here = True  # all its operations can be computed on the CPU
        self.assigned: dict[int, object] = {}  # variables of the caller's that it assigns to
        self.iterators: list[tuple] = []  # of the caller's that it takes from, and the operations

    def run(self, operations, results) -> None:
        """Raises TensorFlow's own error where memory does not suffice; nothing is held then, nor afterwards but what is kept."""
        uses = Counter(id(t) for operation in operations for t in operation.inputs)
        for tensor in results:
            uses[id(tensor)] += 1
        try:
            for operation in operations:
                self._come_to(operation, uses)
        finally:
            for holding in {id(h): h for h in self._taken.values()}.values():
                self._session.give_back(holding.allocation)
                holding.allocation = 0

    def _come_to(self, operation, uses) -> None:
        kind = operation.type
        if kind in _CALLS:
            self._work_of_call(operation)
        if kind not in _NO_RESULT:
            given = [t for t in operation.inputs if id(t) in self._taken]
            for at, out in enumerate(operation.outputs):
                if uses[id(out)] == 0 or not shapes.is_on_gpu(out.dtype.base_dtype.name):
                    continue
                if kind in shapes.SHARES:
                    if given:
                        self._share(given[0], out)
                    continue
                if not out.shape.is_fully_defined():
                    self.unknown.append(operation.name)
                    continue
                size = shapes.bytes_of(shapes.dims(out), out.dtype.base_dtype)
                alone = next(
                    (
                        t
                        for t in given
                        if uses[id(t)] == 1
                        and self._taken[id(t)].arrays == 1
                        and shapes.dims(t) == shapes.dims(out)
                        and t.dtype == out.dtype
                    ),
                    None,
                )
                if kind in shapes.IN_PLACE and alone is not None:
                    self._share(alone, out)
                else:
                    self._taken[id(out)] = self._take(size, out, operation)
                self.work += self._work(operation, out)
        if kind not in _CALLS and kind not in _NO_RESULT and not left_out.runs_here(kind):
            self.runs_here = False
        if left_out.changes(kind):
            resource = self._given.get(id(operation.inputs[0]))
            if kind in left_out.ITERATES:
                self.iterators.append((resource, operation))
            elif resource is not None:
                self.assigned[id(resource)] = resource
        if kind.startswith("TensorListReserve") or kind == "EmptyTensorList":
            self.kept_in_loops.append(operation.name)
        if kind in _ASSIGNS and len(operation.inputs) > 1:
            self._keep(operation)
        for tensor in operation.inputs:
            uses[id(tensor)] -= 1
            if uses[id(tensor)] == 0:
                self._drop(tensor)

    def _take(self, size: int, out, operation) -> Holding:
        session = self._session
        shape = shapes.dims(out)
        name = _layer_of(operation.name) or _line_of(operation) or session.line_name()
        tensor = session.device.tensor(shape, out.dtype.base_dtype.name, operation.type, name)
        try:
            holding = Holding(session.take(size, self._stack, tensor))
        except OutOfMemory:
            raise session.out_of_memory(shape, out.dtype.base_dtype.name, operation.name) from None
        holding.arrays = 1
        return holding

    def _share(self, given, out) -> None:
        holding = self._taken[id(given)]
        holding.arrays += 1
        self._taken[id(out)] = holding

    def _drop(self, tensor) -> None:
        holding = self._taken.pop(id(tensor), None)
        if holding is not None:
            holding.let_go(self._session)

    def _keep(self, operation) -> None:
        """A variable of the graph has it from now on, in the place of what it had."""
        from tensorflow.python.framework import ops

        holding = self._taken.get(id(operation.inputs[1]))
        handle = operation.inputs[0]
        shared, resource = self._session.eager.shared, self._given.get(id(handle), handle)
        name = None if isinstance(resource, ops.EagerTensor) else resource.op.name.removeprefix(_AGAIN)
        # it is copied into the memory that is there
        if holding is None or (shared.has(resource) if name is None else name in self._variables):
            return
        if name is None:
            shared.set_variable(resource, Holding(holding.allocation))
        else:
            self._variables[name] = holding.allocation
        for tensor, each in list(self._taken.items()):
            if each is holding:
                del self._taken[tensor]

    def _work(self, operation, out) -> int:
        elements = math.prod(shapes.dims(out))
        if operation.type in ("MatMul", "BatchMatMulV2", "Einsum", "BatchMatMul"):
            shape = operation.inputs[0].shape
            return elements * max((d for d in shape.as_list() or [1] if d), default=1) if shape.rank else elements
        if operation.type.startswith(("Conv", "DepthwiseConv")):
            return elements * 64
        return elements

    def _work_of_call(self, operation) -> None:
        """A function inside: what it takes for itself is the walk of its own graph."""
        rounds = _ROUNDS if operation.type.endswith("While") else 1
        for name in _CALLS[operation.type]:
            try:
                inner = operation.graph._get_function(operation.get_attr(name).name).graph
            except (AttributeError, ValueError, KeyError):
                self.unknown.append(operation.name)
                continue
            inputs = operation.inputs[1:] if operation.type.endswith("If") else operation.inputs
            outer = (self._given.get(id(t), t) for t in inputs)
            walk = Walk(self._session, self._name, {id(t): o for t, o in zip(inner.inputs, outer)}, self._variables)
            walk.run(inner.get_operations(), [])
            self.work += rounds * walk.work
            self.unknown += walk.unknown
            self.runs_here &= walk.runs_here
            self.kept_in_loops += walk.kept_in_loops
            self.assigned.update(walk.assigned)
            self.iterators += walk.iterators


@functools.lru_cache(maxsize=65536)
def _place(traceback) -> str:
    for frame in reversed(traceback):
        if not is_library(frame.filename) and not is_own(frame.filename):
            return f"{os.path.basename(frame.filename)}:{frame.lineno}"
    return ""


@functools.lru_cache(maxsize=65536)
def _layer_of(name: str) -> str:
    """The layer that made it: functional_1.conv2d_2 of gradient_tape/functional_1/conv2d_2/Conv2DBackpropFilter; empty: none did."""
    words = [word for word in name.removeprefix(_AGAIN).split("/")[:-1] if word not in _NO_LAYER]
    return ".".join(word.replace(".", "_") for word in words[:2])


def _line_of(operation) -> str:
    try:
        return _place(tuple(operation.traceback or ()))
    except (AttributeError, TypeError):
        return ""


def needed(graph, wanted, fed: set) -> list:
    """The operations that a session would run for these, in order; what is fed is not computed."""
    found, waiting = set(), [getattr(w, "op", w) for w in wanted]
    while waiting:
        operation = waiting.pop()
        if operation in found:
            continue
        found.add(operation)
        waiting += [t.op for t in operation.inputs if t.ref() not in fed]
        waiting += list(operation.control_inputs)
    return [operation for operation in graph.get_operations() if operation in found]


def _without_xla() -> None:
    """The CPU's XLA would compile for seconds what is computed here in a moment; what it would take is not asked."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    kind = polymorphic_function.Function
    made = kind.__init__

    @functools.wraps(made)
    def init(self, *arguments, **named):
        made(self, *arguments, **named)
        if getattr(self, "_jit_compile", None):
            self._jit_compile = False

    kind.__init__ = init


def _note_unknown(session, walk, what: str) -> None:
    if walk.unknown:
        session.notes.add(
            "kernel",
            f"of {len(walk.unknown)} operations of {what} the sizes are not known before they run, and were not counted ({walk.unknown[0]})",
            verdict=f"without {len(walk.unknown)} operations of {what} whose sizes are not known",
        )
    if walk.kept_in_loops:
        session.notes.add(
            "kernel",
            f"what loops inside {what} keep of each round was not counted: how many there are is not known before they run ({walk.kept_in_loops[0]})",
            verdict=f"without what loops inside {what} keep of each round",
        )


def install(session) -> None:
    from tensorflow.python.client import session as sessions
    from tensorflow.python.eager.polymorphic_function import atomic_function
    from tensorflow.python.framework import ops

    session.graphs_left_out = weakref.WeakKeyDictionary()  # sessions' graphs of which something was not computed
    session.graph_variables = weakref.WeakKeyDictionary()  # what the variables of each graph have taken, by name
    kind = atomic_function.AtomicFunction
    call = kind.call_flat

    def call_flat(self, *args):
        if session.eager.inside or session.closed or not self._bound_context.executing_eagerly():
            return call(self, *args)
        if not session.eager._is_planned(self._bound_context):
            return call(self, *args)
        session.tick()
        graph = self.graph
        outputs = list(graph.outputs)
        given = {id(t): one for t, one in zip(graph.inputs, args)}
        walk = Walk(session, self.name, given, session.graph_variables.setdefault(graph, {}))
        session.saw_graph = True
        session.count_call(self)
        try:
            walk.run(graph.get_operations(), outputs)
            session.count_training(self, walk.assigned)
            _note_unknown(session, walk, "a traced function")
        except Exception as problem:
            session.trouble(problem, "a traced function")
            return session.eager.unwatched(call, self, *args)
        is_small = session.all_real or walk.work <= _MOST_WORK
        told = None if is_small and walk.runs_here else left_out.results_told(outputs)
        if told is None:
            results = session.eager.unwatched(call, self, *args)
        else:
            results = left_out.leave_out(session, walk, told)
        stand_in = told is not None or any(map(session.eager.is_stand_in, args))
        if stand_in:
            for resource in walk.assigned.values():
                session.eager.shared.mark(resource)
        for result in results or ():
            if isinstance(result, ops.EagerTensor):
                session.eager._hold_new(result, "tf.function", stand_in)
        return results

    kind.call_flat = call_flat
    _without_xla()
    made, run = sessions.BaseSession.__init__, sessions.BaseSession.run

    def init(self, target="", graph=None, config=None):
        if config is not None and session.device is None:
            options = config.gpu_options
            if options.per_process_gpu_memory_fraction:
                session.chosen["per_process_gpu_memory_fraction"] = str(options.per_process_gpu_memory_fraction)
            if options.allow_growth:
                session.chosen["TF_FORCE_GPU_ALLOW_GROWTH"] = "true"
        made(self, target, graph, config)

    def run_session(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if session.closed or session.eager.inside or session.only_cpu:
            return run(self, fetches, feed_dict, options, run_metadata)
        session.tick()
        try:
            counted = _count_session(session, self, fetches, feed_dict or {})
        except Exception as problem:
            session.trouble(problem, "a session's run")
            counted = None
        if counted is not None and counted.work > _MOST_WORK and not session.all_real:
            values = _zeros_for(session, fetches)
            if values is not None:
                left_out.initialise(session, self, run, fetches, feed_dict or {}, needed)
                return values[0]
        if self.graph in session.graphs_left_out:
            stand_in_reads.note(session)
        return session.eager.unwatched(run, self, fetches, feed_dict, options, run_metadata)

    sessions.BaseSession.__init__, sessions.BaseSession.run = init, run_session


def _count_session(session, of, fetches, feeds: dict):
    """The walk, or None where the fetches are not what a session takes: then TensorFlow says so."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import ops

    flat = tf.nest.flatten(fetches)
    try:
        with of.graph.as_default():
            wanted = [of.graph.as_graph_element(f, allow_tensor=True, allow_operation=True) for f in flat]
            fed = {of.graph.as_graph_element(k): np.shape(v) for k, v in feeds.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    operations = needed(of.graph, wanted, {t.ref() for t in fed})
    if fed and any(not out.shape.is_fully_defined() for operation in operations for out in operation.outputs):
        operations, wanted = _with_shapes(session, of.graph, operations, wanted, fed)
    walk = Walk(session, "session", {}, session.graph_variables.setdefault(of.graph, {}))
    session.saw_graph = True
    stack = session.here()
    taken = []
    try:
        for tensor, shape in fed.items():
            if shapes.is_on_gpu(tensor.dtype.base_dtype.name):
                size = shapes.bytes_of(shape, tensor.dtype.base_dtype)
                try:
                    taken.append(
                        session.take(
                            size,
                            stack,
                            session.device.tensor(
                                tuple(shape), tensor.dtype.base_dtype.name, "feed", session.line_name()
                            ),
                        )
                    )
                except OutOfMemory:
                    raise session.out_of_memory(shape, tensor.dtype.base_dtype.name, tensor.op.name) from None
        walk.run(operations, [w for w in wanted if not isinstance(w, ops.Operation)])
    finally:
        for allocation in taken:
            session.give_back(allocation)
    _note_unknown(session, walk, "a session's run")
    return walk


def _with_shapes(session, graph, operations, wanted, fed):
    """The same graph with the shapes of what is fed."""
    import tensorflow as tf

    names = [w.name for w in wanted]
    try:
        with tf.Graph().as_default() as known:
            inputs = {}
            for tensor, shape in fed.items():
                inputs[tensor.name] = tf.compat.v1.placeholder(tensor.dtype.base_dtype, shape)
            tf.import_graph_def(graph.as_graph_def(add_shapes=False), input_map=inputs, name=_AGAIN.rstrip("/"))
            again = [known.as_graph_element(_AGAIN + name) for name in names]
            return needed(known, again, {t.ref() for t in inputs.values()}), again
    except Exception:
        return operations, wanted


def _zeros_for(session, fetches):
    """What the session would return, not computed, in a tuple; None: it is not known how large."""
    import numpy as np
    import tensorflow as tf
    from tensorflow.python.framework import ops

    def value(fetch):
        if isinstance(fetch, ops.Operation):
            return None
        if not hasattr(fetch, "shape") or not fetch.shape.is_fully_defined():
            raise ValueError
        return np.zeros(shapes.dims(fetch), fetch.dtype.base_dtype.as_numpy_dtype)[()]

    try:
        values = tf.nest.map_structure(value, fetches)
    except (ValueError, TypeError):
        return None
    if any(one is not None for one in tf.nest.flatten(values)):
        stand_in_reads.note(session)
    return (values,)
