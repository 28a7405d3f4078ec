"""What a session is asked for (TensorFlow 1): the operations of its graph that this needs, with the shapes of what is fed."""

from __future__ import annotations

import weakref

import numpy as np

from ..session import stand_in_reads
from . import left_out, loops_of_version_1, operation_kinds, pipelines, walk
from .graph_facts import Facts, OtherFacts, Prepared


def install(session) -> None:
    from tensorflow.python.client import session as sessions

    loops_of_version_1.install()
    session.graphs_left_out = weakref.WeakKeyDictionary()  # graphs of which something was not computed
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
        asked = _Asked.of(self.graph, fetches, feed_dict or {})
        outcome = None
        if asked is not None:
            feed_dict = _with_elements(session, self, run, asked, feed_dict or {})
            try:
                outcome = session.eager.unwatched(asked.walked, session)
            except Exception as problem:
                session.trouble(problem, "a session's run")
        if outcome is not None and outcome.work > left_out.MOST_WORK and not session.all_real:
            values = _zeros_for(session, fetches, asked, outcome.facts)
            if values is not None:
                left_out.initialise(session, self, run, asked.operations)
                return values[0]
        if self.graph in session.graphs_left_out:
            stand_in_reads.note(session)
        return session.eager.unwatched(run, self, fetches, feed_dict, options, run_metadata)

    sessions.BaseSession.__init__, sessions.BaseSession.run = init, run_session


def _needed(graph, wanted, fed: set) -> list:
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


class _Fed:
    """A value that is fed, as facts want arguments."""

    def __init__(self, tensor, value):
        import tensorflow as tf

        self._value, self.dtype, self.shape = value, tensor.dtype.base_dtype, tf.TensorShape(np.shape(value))

    def numpy(self):
        return np.asarray(self._value)


class _Asked:
    """What one run of a session asks for."""

    def __init__(self, graph, wanted, fed: dict):
        from tensorflow.python.framework import ops

        self.graph, self.fed = graph, fed
        self.flat = wanted
        self.tensors = [w for w in wanted if not isinstance(w, ops.Operation)]
        self.operations = self._operations()

    @staticmethod
    def of(graph, fetches, feeds: dict) -> _Asked | None:
        """None: the fetches are not what a session takes, and TensorFlow says so."""
        import tensorflow as tf

        try:
            with graph.as_default():
                wanted = [
                    graph.as_graph_element(f, allow_tensor=True, allow_operation=True) for f in tf.nest.flatten(fetches)
                ]
                fed = [(graph.as_graph_element(key), value) for key, value in feeds.items()]
                return _Asked(graph, wanted, {id(t): (t, _Fed(t, value)) for t, value in fed})
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def _operations(self) -> list:
        known = Prepared.of(self.graph).facts
        key = ("operations", self.graph.version, tuple(map(id, self.flat)), frozenset(self.fed))
        if key not in known:
            known[key] = _needed(self.graph, self.flat, {t.ref() for t, _ in self.fed.values()})
        return known[key]

    def feed(self, tensor, value) -> None:
        self.fed[id(tensor)] = tensor, _Fed(tensor, value)

    def walked(self, session):
        session.saw_graph = True
        prepared = Prepared.of(self.graph)
        operations = self._operations()
        fed = [(tensor, tuple(value.shape.as_list())) for tensor, value in self.fed.values()]
        key = (tuple(map(id, self.flat)), tuple((id(tensor), shape) for tensor, shape in fed))
        known = prepared.facts.setdefault(key, [])
        if not known:
            known.append(Facts(prepared))
        for _ in range(2):
            facts = known[0]
            try:
                for tensor, value in self.fed.values():
                    facts.give_outside(tensor, value, False)
                elements = pipelines.Elements(session)
                outcome = walk.through(session, self.graph, operations, self.tensors, {}, facts, elements, fed)
                if kept := loops_of_version_1.kept_by(operations):
                    outcome.kept_in_loops.append(kept)
                outcome.tell(session, "a session's run")
                return outcome
            except OtherFacts:
                known[0] = Facts(prepared)
            finally:
                facts.let_go()
        return None


def _with_elements(session, of, run, asked: _Asked, feeds: dict) -> dict:
    """What the run takes from pipelines is taken now, and fed: then its size is known."""
    nexts = [operation for operation in asked.operations if operation.type in operation_kinds.NEXT]
    if not nexts:
        return feeds
    told = session.eager.unwatched(run, of, [list(operation.outputs) for operation in nexts])
    feeds = dict(feeds)
    for operation, values in zip(nexts, told):
        for tensor, value in zip(operation.outputs, values):
            feeds[tensor] = value
            asked.feed(tensor, value)
    return feeds


def _zeros_for(session, fetches, asked: _Asked, facts: Facts):
    """What the session would return, not computed, in a tuple; None: it is not known how large."""
    import tensorflow as tf
    from tensorflow.python.framework import ops

    given = iter(asked.flat)

    def value(_):
        fetch = next(given)
        if isinstance(fetch, ops.Operation):
            return None
        shape = facts.shape(fetch)
        if shape is None:
            raise ValueError
        return np.zeros(shape, fetch.dtype.base_dtype.as_numpy_dtype)[()]

    try:
        values = tf.nest.map_structure(value, fetches)
    except (ValueError, TypeError):
        return None
    if any(one is not None for one in tf.nest.flatten(values)):
        stand_in_reads.note(session)
    return (values,)
