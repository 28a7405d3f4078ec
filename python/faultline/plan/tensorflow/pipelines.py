"""What a graph takes from the program's tf.data pipelines. How large a batch is only the pipeline knows, so it is asked: the element is taken, and if the graph is then computed it gets the same."""

from __future__ import annotations

from collections import Counter

from ...common import tensorflow_shapes as shapes
from .operation_kinds import NEXT, NEXT_IF_ANY

_MOST_ELEMENTS = 1000  # of a data set whose elements are of different sizes
_MOST_BYTES = 64 << 20  # of elements that are given to a graph that is computed


def install(session) -> None:
    """Elements that a pipeline puts on the GPU ahead of the program are nobody's argument yet: how many wait there is told by nothing that is followed."""
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops import prefetching_ops

    copy_to_device = prefetching_ops.copy_to_device

    def copied(target_device, *arguments, **named):
        if "GPU" in str(target_device).upper() and not session.closed:
            session.notes.add(
                "value",
                "elements of a pipeline that wait on the GPU until the program takes them (prefetch_to_device, copy_to_device) are not counted: up to buffer_size of them",
                "",
                verdict="without the elements that a pipeline holds on the GPU ahead",
            )
        return copy_to_device(target_device, *arguments, **named)

    prefetching_ops.copy_to_device = tf.data.experimental.copy_to_device = copied


class PipelineEnded(Exception):
    """The pipeline has no more, or failed: that is the program's, in TensorFlow's own words."""

    def __init__(self, problem: Exception):
        super().__init__(str(problem))
        self.problem = problem


class Elements:
    """What one call of a function takes, in order. The function may be walked again, with other facts: then they are the same."""

    def __init__(self, session):
        self._session = session
        self.taken: list[tuple] = []  # the iterator, and what came; None: its end
        self._of: dict[int, list] = {}  # what came of each iterator
        self.at: Counter = Counter()  # how many of each iterator's this walk has come by

    def rewind(self, at: Counter | None = None) -> None:
        self.at = Counter(at)

    def next_of(self, resource, operation) -> list | None:
        came, at = self._of.setdefault(id(resource), []), self.at[id(resource)]
        if at == len(came):
            came.append(self._take(resource, operation))
            self.taken.append((resource, came[-1]))
        self.at[id(resource)] += 1
        return came[at]

    def _take(self, resource, operation) -> list | None:
        from tensorflow.python.framework import errors_impl
        from tensorflow.python.ops import gen_dataset_ops

        kinds, sizes = operation.get_attr("output_types"), operation.get_attr("output_shapes")
        try:
            return list(self._session.eager.unwatched(gen_dataset_ops.iterator_get_next, resource, kinds, sizes))
        except errors_impl.OutOfRangeError as problem:
            if operation.type == NEXT_IF_ANY:
                return None
            raise PipelineEnded(problem) from None
        except errors_impl.OpError as problem:
            raise PipelineEnded(problem) from None

    def given_again(self, arguments) -> tuple[list, list] | None:
        """The arguments with iterators that yield the same once more, and what keeps those alive. None: there is no such."""
        try:
            return self._session.eager.unwatched(self._given_again, arguments)
        except Exception:  # of a type that no data set is made of
            return None

    def _given_again(self, arguments):
        import tensorflow as tf

        sets: dict = {}
        for resource, element in self.taken:
            if element is None:
                continue
            if sum(shapes.bytes_of(shapes.dims(t), t.dtype) for t in element) > _MOST_BYTES:
                return None
            with tf.device("/CPU:0"):
                one = tf.data.Dataset.from_tensors(tuple(element))
                sets[id(resource)] = sets[id(resource)].concatenate(one) if id(resource) in sets else one
        if any(id(resource) not in sets for resource, _ in self.taken):
            return None
        iterators = {key: iter(one) for key, one in sets.items()}
        swapped = [iterators[id(a)]._iterator_resource if id(a) in iterators else a for a in arguments]
        return swapped, list(iterators.values())


def largest_of(walk, source, body) -> list | None:
    """The largest element of a data set that the graph was given, which can be begun anew: the first, where its type says that all are alike. Pairs, as a loop's body takes its arguments; None: it is
    not the program's own."""
    from tensorflow.python.framework import errors_impl, ops, tensor_spec
    from tensorflow.python.data.ops import dataset_ops

    data = walk.given.get(id(source))
    if not isinstance(data, ops.EagerTensor):
        return None
    operation = body.operation
    states = len(operation.get_attr("Tstate"))
    function = operation.graph._get_function(operation.get_attr("f").name).graph
    count = len(function.inputs) - states - (len(operation.inputs) - 1 - states)
    specs = tuple(tensor_spec.TensorSpec(t.shape, t.dtype) for t in function.inputs[states : states + count])

    def largest():
        chosen, most = (), -1
        for count, element in enumerate(dataset_ops._VariantDataset(data, specs)):
            size = sum(shapes.bytes_of(shapes.dims(t), t.dtype) for t in element)
            if size > most:
                chosen, most = element, size
            if all(spec.shape.is_fully_defined() for spec in specs):
                break
            if count == _MOST_ELEMENTS:
                walk.session.notes.add(
                    "value",
                    f"the elements of a data set were taken to be no larger than the largest of its first {_MOST_ELEMENTS}",
                    verdict=f"with the largest of {_MOST_ELEMENTS} elements",
                )
                break
        return chosen

    try:
        return [(None, tensor) for tensor in walk.session.eager.unwatched(largest)]
    except errors_impl.OpError as problem:
        raise PipelineEnded(problem) from None


def come_to(walk, step) -> bool:
    """Is it a look into a pipeline? Then the walk has been through it."""
    kind = step.kind
    if kind in NEXT:
        return _next(walk, step)
    if kind == NEXT_IF_ANY:
        return _next_if_any(walk, step)
    if kind == "OptionalHasValue" and step.ids[0] in walk.optionals:
        import numpy as np

        walk.facts.give(step.outputs[0].tensor, (), np.array(walk.optionals[step.ids[0]] is not None))
        return True
    if kind == "OptionalGetValue" and walk.optionals.get(step.ids[0]) is not None:
        _came(walk, step, walk.optionals[step.ids[0]])
        return True
    return False


def _resource(walk, step):
    from tensorflow.python.framework import ops

    resource = walk.given.get(step.ids[0])
    return resource if isinstance(resource, ops.EagerTensor) else None


def _next(walk, step) -> bool:
    resource = _resource(walk, step)
    if all(shapes.is_known(out.shape) for out in step.outputs):  # whatever an earlier run was given
        if resource is not None:
            walk.outcome.iterators.append((resource, step.operation))
        return False
    if resource is None:
        return False
    _came(walk, step, walk.elements.next_of(resource, step.operation))
    return True


def _next_if_any(walk, step) -> bool:
    resource = _resource(walk, step)
    if resource is not None:
        walk.optionals[step.outputs[0].id] = walk.elements.next_of(resource, step.operation)
    return True


def _came(walk, step, element: list) -> None:
    for out, tensor in zip(step.outputs, element):
        walk.facts.give_outside(out.tensor, tensor, False)
        walk.result(step, out)
