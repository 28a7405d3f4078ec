"""Graphs: a traced tf.function, or what a session is asked for. What they take is a walk through their operations (walk.py); large ones are not computed."""

from __future__ import annotations

import functools
import weakref

from ...common import tensorflow_shapes as shapes
from ...common.tensorflow_errors import refused_by_node, refused_in_graph
from ..session import stand_in_reads
from ..session.unplannable import Unplannable
from . import left_out, pipelines, sessions, walk
from .graph_facts import Facts, OtherFacts, Prepared

_SMALL_BYTES = 8 << 20  # of arguments of a function whose work is not known
_MOST_FACTS = 8  # of runs of one function with arguments of the same shapes


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


class _Call:
    """One call of a traced function."""

    def __init__(self, session, function, arguments):
        self.session, self.function, self.arguments = session, function, arguments
        self.elements = pipelines.Elements(session)

    def walked(self):
        session, graph = self.session, self.function.graph
        given = {id(t): one for t, one in zip(graph.inputs, self.arguments)}
        operations, outputs = graph.get_operations(), list(graph.outputs)
        for facts in self._facts(graph):
            try:
                for tensor, value in zip(graph.inputs, self.arguments):
                    known = session.tensors.of(value)
                    is_loose = known is not None and known.holding.is_loose
                    facts.give_outside(tensor, value, session.eager.is_stand_in(value), is_loose)
                return walk.through(session, graph, operations, outputs, given, facts, self.elements)
            except OtherFacts:
                self.elements.rewind()
            finally:
                facts.let_go()
        raise AssertionError("facts that are new are of no other run")

    def _facts(self, graph):
        """Those of earlier runs that were given the same shapes, and at last new ones."""
        prepared = Prepared.of(graph)
        key = tuple(shapes.dims(t) if t.shape.is_fully_defined() else None for t in self.arguments)
        known = prepared.facts.setdefault(key, [])
        yield from list(reversed(known))
        known.append(Facts(prepared))
        del known[:-_MOST_FACTS]
        yield known[-1]

    def _has_large_arguments(self) -> bool:
        told = (t for t in self.arguments if shapes.is_plain(t.dtype) and t.shape.is_fully_defined())
        return sum(shapes.bytes_of(shapes.dims(t), t.dtype) for t in told) > _SMALL_BYTES

    def _arguments_again(self) -> tuple | None:
        """Those of the call, with pipelines that yield once more what was looked at, and what keeps these alive; None: there is no such."""
        if not self.elements.taken:
            return self.arguments, ()
        return self.elements.given_again(self.arguments)

    def results(self, outcome, call):
        """Computed, where that is not much work, else left out; and whether these are stand-ins."""
        from tensorflow.python.framework import errors_impl

        session, outputs = self.session, list(self.function.graph.outputs)
        given = any(map(session.eager.is_stand_in, self.arguments))
        is_small = outcome.work <= left_out.MOST_WORK and not (outcome.unknown and self._has_large_arguments())
        # what stands in for numbers does not say how many of them are chosen
        is_small = is_small and not (given and any(id(one) in outcome.facts.loose for one in outputs))
        if (session.all_real or is_small) and outcome.runs_here:
            again = self._arguments_again()
            if again is not None:
                try:
                    return session.eager.unwatched(call, self.function, *again[0]), given
                except errors_impl.InvalidArgumentError:
                    if not given:
                        raise
                    stand_in_reads.note(session)  # with the numbers that it would have it may well not refuse
        told = left_out.results_told(outputs, outcome.facts)
        if told is None:
            again = self._arguments_again()
            if again is None:
                Unplannable(
                    "a traced function has to be computed, and takes other elements of its pipeline than it was planned with: those are gone, and were too large to be given again"
                )
            return session.eager.unwatched(call, self.function, *(again or (self.arguments,))[0]), given
        return left_out.leave_out(session, outcome, told), True


def _tell_refused(session, graph, problem) -> None:
    """With the line of the function that made the operation."""
    message = str(problem.message)
    refused = refused_in_graph(message) or refused_by_node(message, graph)
    if refused is None:
        return
    device, stack = session.device, session.here()
    for file, line, function in refused.made_at:
        stack = device.stack(stack, device.frame(function, file, int(line)))
    device.op_begin(refused.operation, stack)
    device.op_end(refused.words, True, stack)


def install(session) -> None:
    from tensorflow.python.eager.polymorphic_function import atomic_function
    from tensorflow.python.framework import errors_impl, ops

    session.kept_by_graphs = weakref.WeakKeyDictionary()
    kind = atomic_function.AtomicFunction
    call = kind.call_flat

    def call_flat(self, *args):
        if session.eager.inside or session.closed or not self._bound_context.executing_eagerly():
            return call(self, *args)
        if not session.eager._is_planned(self._bound_context):
            return call(self, *args)
        session.saw_graph = True
        session.count_call(self)
        one = _Call(session, self, args)
        try:
            outcome = session.eager.unwatched(one.walked)
            session.count_training(self, outcome.assigned)
            outcome.tell(session, "a traced function")
            results, stand_in = one.results(outcome, call)
        except pipelines.PipelineEnded as ended:
            raise ended.problem from None
        except Exception as problem:
            if isinstance(problem, errors_impl.OpError) and not session.is_out_of_memory(problem):
                if not any(map(session.eager.is_stand_in, args)):
                    _tell_refused(session, self.graph, problem)
                raise  # what the graph itself refuses
            session.trouble(problem, "a traced function")
            return session.eager.unwatched(call, self, *args)
        if stand_in:
            for resource in outcome.assigned.values():
                session.eager.shared.mark(resource)
        for result, output in zip(results or (), self.graph.outputs):
            if isinstance(result, ops.EagerTensor):
                is_loose = stand_in and id(output) in outcome.facts.loose
                session.eager._hold_new(result, "tf.function", stand_in, is_loose)
        session.tick()  # what was traced is counted before the time is over
        return results

    kind.call_flat = call_flat
    _without_xla()
    sessions.install(session)
