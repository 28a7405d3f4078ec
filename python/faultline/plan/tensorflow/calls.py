"""Operations that are functions: calls, branches and loops. What a function takes is the walk of its own graph; a loop is walked round by round, as long as its condition can be told."""

from __future__ import annotations

import functools

from ...common import tensorflow_shapes as shapes
from . import pipelines, tensor_lists
from .graph_facts import Facts, Prepared, Step, arguments_of
from .operation_kinds import BRANCHES, CALLS, CASES, LOOPS, OF_FUNCTIONS

_ROUNDS = 8  # of a loop whose end is not known, for how much work it is
_SEEN_ROUNDS = 2  # of such a loop that are walked
_MOST_VISITS = 150_000  # operations, of one walk: of longer loops the rest is like the last round
_MOST_ROUNDS = 1 << 24


def come_to(walk, step: Step) -> bool:
    """Is it a function? Then the walk has been through it."""
    kind = step.kind
    if kind not in OF_FUNCTIONS:
        if _calls_others(kind):
            walk.outcome.unknown.append(f"{step.name}, {kind}")
        return False
    try:
        if kind in CALLS:
            inside = Inside(walk, step, "f")
            inside.run(step.inputs)
            inside.tell(step)
        elif kind in BRANCHES or kind in CASES:
            _branch(walk, step)
        elif kind in LOOPS:
            _loop(walk, step)
        else:
            _reduce(walk, step)
    except _NoGraph:
        walk.outcome.unknown.append(f"{step.name}, {kind}")
    return True


@functools.lru_cache(maxsize=4096)
def _calls_others(kind: str) -> bool:
    """Functions that are called in a way of which nothing is known here; data sets' run on the host."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(kind)
    if definition is None or "Dataset" in kind or "Iterator" in kind:
        return False
    return any(attribute.type in ("func", "list(func)") for attribute in definition.attr)


class _NoGraph(Exception):
    """The function is not one of this graph's."""


class Inside:
    """A function that an operation calls, with what it was given and what it returned."""

    def __init__(self, walk, step: Step, role: str | int, rounds: int = 1):
        """role: the operation's attribute that names the function, or which of its branches it is."""
        try:
            branches = step.operation.get_attr("branches") if isinstance(role, int) else None
            named = step.operation.get_attr(role) if branches is None else branches[role]
            self.graph = step.operation.graph._get_function(named.name).graph
        except (AttributeError, ValueError, KeyError):
            raise _NoGraph from None
        self.walk, self.step, self.role, self.rounds = walk, step, role, rounds
        self.facts = self.inner = None
        self.holdings: list = []

    def run(self, arguments, facts: Facts | None = None) -> None:
        """With arguments of the walk around it."""
        self.begin(facts or self.walk.facts.child(self.step, self.role, self.graph), arguments)
        for inner, outer in zip(self.graph.inputs, arguments):
            if (holding := self.walk.hand_over(outer)) is not None:
                self.inner.taken[id(inner)] = holding
            if (known := self.walk.lists.get(id(outer))) is not None:
                known.is_shared = True
                self.inner.lists[id(inner)] = known
            if id(outer) in self.walk.optionals:
                self.inner.optionals[id(inner)] = self.walk.optionals[id(outer)]
        self.finish()

    def begin(self, facts: Facts, arguments) -> None:
        walk = self.walk
        given = {id(inner): walk.given.get(id(outer), outer) for inner, outer in zip(self.graph.inputs, arguments)}
        self.facts = facts
        self.inner = walk.inside(given, facts, self.rounds)

    def finish(self) -> None:
        steps = Prepared.of(self.graph).steps(self.graph.get_operations())
        self.holdings = self.inner.run(steps, self.graph.outputs, claim=True)

    def let_go(self) -> None:
        for holding in self.holdings:
            if holding is not None:
                holding.let_go(self.walk.session)
        self.holdings = []

    def end(self) -> None:
        """Nothing of it is held."""
        self.let_go()
        self.inner.lists = {}

    def tell(self, step: Step) -> None:
        """Its results are the operation's."""
        walk = self.walk
        for out, result, holding in zip(step.outputs, self.graph.outputs, self.holdings):
            walk.facts.follow(out.tensor, self.facts, result)
            if (known := self.inner.lists.get(id(result))) is not None:
                walk.lists[out.id] = known
            if id(result) in self.inner.optionals:
                walk.optionals[out.id] = self.inner.optionals[id(result)]
            receive(walk, out, holding)


def receive(walk, out, holding) -> None:
    """A claimed result becomes the outer walk's, as long as something uses it."""
    if holding is None:
        return
    if walk.uses[out.id]:
        walk.taken[out.id] = holding
    else:
        holding.let_go(walk.session)


def _branch(walk, step: Step) -> None:
    known = walk.facts.numbers(step.inputs[0])
    names = BRANCHES.get(step.kind) or tuple(range(len(step.operation.get_attr("branches"))))
    if known is not None and known.size == 1:
        value = known.reshape(-1)[0]
        if step.kind in CASES:  # the last, where there is none of that number
            names = (int(value) if 0 <= value < len(names) else names[-1],)
        else:
            names = (names[0] if bool(value) else names[1],)
    if len(names) == 1:
        inside = Inside(walk, step, names[0])
        inside.run(arguments_of(step))
        inside.tell(step)
    else:
        _ways(walk, step, names)


def _ways(walk, step: Step, names) -> None:
    """Each of them begins with the same arguments and elements, and holds nothing of another's; the results are those of the way whose are largest."""
    arguments, outcome, elements = arguments_of(step), walk.outcome, walk.elements
    before = {id(t): holding for t in arguments if (holding := walk.holding_of(t)) is not None}
    made_by = Prepared.of(step.operation.graph).made_by
    at, furthest, iterators = elements.at, elements.at, outcome.iterators
    inside, sizes, taken = None, {}, []

    def go(role) -> Inside:
        nonlocal furthest, taken
        walk.take_again(before, made_by)
        elements.rewind(at)
        outcome.iterators = list(iterators)
        gone = Inside(walk, step, role)
        gone.run(arguments)
        furthest, taken = furthest | elements.at, max(taken, outcome.iterators, key=len)
        return gone

    ways = []
    for role in names:
        if inside is not None:
            inside.end()
        inside = go(role)
        sizes[role] = _result_bytes(inside)
        ways.append((inside.facts, inside.graph.outputs))
    largest = max(names, key=sizes.get)
    if sizes[largest] > sizes[names[-1]]:
        inside.end()
        inside = go(largest)
    elements.rewind(furthest)
    outcome.iterators = taken
    inside.tell(step)
    for place, out in enumerate(step.outputs):
        walk.facts.follow_ways(out.tensor, [(facts, results[place]) for facts, results in ways])


def _result_bytes(inside: Inside) -> int:
    told = ((inside.facts.shape(t), t.dtype.base_dtype) for t in inside.graph.outputs)
    results = sum(shapes.bytes_of(shape, dtype) for shape, dtype in told if shape is not None)
    lists = (inside.inner.lists.get(id(t)) for t in inside.graph.outputs)
    return results + sum(len(one.kept) * one.bytes_each() for one in lists if one is not None)


# --- loops


class State:
    """The variables of a loop between two rounds: in which facts they are which tensors, their memory, their lists."""

    def __init__(self, facts: Facts, tensors, holdings: list, lists: list):
        self.facts, self.tensors, self.holdings, self.lists = facts, tuple(tensors), holdings, lists
        self.kept = [len(one.kept) if one is not None else 0 for one in lists]  # now: a list can change in its place
        self.lengths = [one.length if one is not None else None for one in lists]

    def numbers(self, at: int):
        return self.facts.numbers(self.tensors[at])

    def facts_for(self, graph, changed: dict | None = None) -> Facts:
        made = Facts(Prepared.of(graph), self.facts)
        for at, inner in enumerate(graph.inputs):
            made.follow(inner, self.facts, self.tensors[at])
            if changed is not None and at in changed:
                made.give(inner, None, changed[at])
        return made

    def keeps_more(self, before: State) -> bool:
        return any(now > then for now, then in zip(self.kept, before.kept))


def _goes_on(graph, state: State, changed: dict | None = None) -> tuple[bool | None, bool]:
    """Does the loop make another round (None: it cannot be told), and is that only as far as it can be told?"""
    facts = state.facts_for(graph, changed)
    for step in Prepared.of(graph).steps(graph.get_operations()):
        facts.infer(step)
    return _truth(graph, facts, graph.outputs[0])


def _truth(graph, facts: Facts, tensor) -> tuple[bool | None, bool]:
    numbers = facts.numbers(tensor)
    if numbers is not None:
        return bool(numbers), False
    made = Prepared.of(graph).made_by.get(id(tensor))
    if made is None or made[0].kind not in ("Identity", "LogicalAnd", "Squeeze"):
        return None, False
    ways = [_truth(graph, facts, one)[0] for one in made[0].inputs]
    if False in ways:
        return False, False
    return (True, True) if True in ways else (None, False)


def _loop(walk, step: Step) -> None:
    cond, body = Inside(walk, step, "cond").graph, Inside(walk, step, "body")
    holdings = [walk.hand_over(tensor) for tensor in step.inputs]
    lists = [walk.lists.get(key) for key in step.ids]
    lists = [one and one.copy() for one in lists]
    state = State(walk.facts, step.inputs, holdings, lists)
    begin, rounds, before = walk.outcome.visits, 0, None
    while True:
        goes, at_most = _goes_on(cond, state)
        if at_most:
            walk.outcome.most.add(step.name)
        if goes is False or rounds > _MOST_ROUNDS:
            break
        if goes is None and rounds >= _SEEN_ROUNDS:
            if before is not None and state.keeps_more(before):
                walk.outcome.kept_in_loops.append(step.name)
            break
        if goes and before is not None and walk.outcome.visits - begin > _MOST_VISITS:
            _rest_of(walk, step, cond, state, before)
            break
        before, state = state, _round(walk, body, state, goes)
        rounds += 1
    for at, out in enumerate(step.outputs):
        walk.facts.follow(out.tensor, state.facts, state.tensors[at])
        if state.lists[at] is not None:
            walk.lists[out.id] = state.lists[at]
        receive(walk, out, state.holdings[at])


def _round(walk, body: Inside, state: State, is_told) -> State:
    inside = Inside(walk, body.step, "body", 1 if is_told else _ROUNDS)
    inside.begin(state.facts_for(inside.graph), body.step.inputs)
    for at, inner in enumerate(inside.graph.inputs):
        if state.holdings[at] is not None:
            inside.inner.taken[id(inner)] = state.holdings[at]
        if state.lists[at] is not None:
            inside.inner.lists[id(inner)] = state.lists[at]
    inside.finish()
    lists = [inside.inner.lists.get(id(tensor)) for tensor in inside.graph.outputs]
    for tensor in inside.graph.outputs:
        if tensor.dtype.base_dtype.is_integer or tensor.dtype.base_dtype.is_bool:
            inside.facts.numbers(tensor)
    inside.facts.let_go()
    return State(inside.facts, inside.graph.outputs, inside.holdings, lists)


def _rest_of(walk, step: Step, cond, state: State, before: State) -> None:
    """What the rounds that are left keep in lists is like what the last one kept."""
    left = _rounds_left(cond, state, before)
    if left is None:
        if state.keeps_more(before):
            walk.outcome.kept_in_loops.append(step.name)
        return
    for at, known in enumerate(state.lists):
        earlier = before.lists[at]
        if known is None or earlier is None or known.element is None:
            continue
        more, length = state.kept[at] - before.kept[at], before.lengths[at]
        if known.length is not None and length is not None:
            known.length = max(0, known.length + left * (known.length - length))
        if more <= 0:
            continue
        known.replace_zeros(left * more)
        dtype = step.operation.get_attr("T")[at]
        held = walk.take(left * more * known.bytes_each(), (left * more, *known.element), str(dtype.name), step)
        known.kept.append(tensor_lists.KeptTensor(walk.session, held))
        held.let_go(walk.session)


def _rounds_left(cond, state: State, before: State) -> int | None:
    """By its counters: whole numbers that change by the same in each round."""
    import numpy as np

    steps = {}
    for at in range(len(state.tensors)):
        now, then = state.numbers(at), before.numbers(at)
        if now is not None and then is not None and now.dtype.kind in "iu" and now.ndim == 0:
            steps[at] = (int(now), int(now) - int(then), now.dtype)

    def goes(rounds: int):
        changed = {at: np.array(value + rounds * by, dtype) for at, (value, by, dtype) in steps.items()}
        return _goes_on(cond, state, changed)[0]

    low, high = 0, 1
    while goes(high):
        low, high = high, high * 2
        if high > _MOST_ROUNDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if goes(middle) else (low, middle)
    for at, (value, by, dtype) in steps.items():
        state.facts.give(state.tensors[at], None, np.array(value + high * by, dtype))
    return high


# --- loops over a data set inside the graph: the body is a function of the data set that is made for it (ScanDataset), which another operation runs to its end


def _reduce(walk, step: Step) -> None:
    prepared = Prepared.of(step.operation.graph)
    bodies, source = [(step, len(step.operation.get_attr("Tstate")))], step.inputs[0]
    while (made := prepared.step(source.op)).kind in _AROUND_LOOPS:
        if made.kind == "ScanDataset":
            bodies.append((made, len(made.operation.get_attr("Tstate"))))
        source = made.inputs[0]
    element = pipelines.largest_of(walk, source, bodies[-1][0])
    if element is None:
        raise _NoGraph
    for body, states in reversed(bodies):
        element = _rounds_of(walk, body, states, element)
    for out, tensor in zip(step.outputs, step.inputs[1:]):
        walk.facts.follow(out.tensor, walk.facts, tensor)
        walk.result(step, out)


_AROUND_LOOPS = ("ScanDataset", "TakeWhileDataset", "OptionsDataset", "PrefetchDataset")


def _rounds_of(walk, body: Step, states: int, element: list) -> list:
    """The first rounds of it; how many there are only the data set knows. Returns what it yields in the place of an element, each with the facts that tell its shape."""
    given = body.inputs[1:]
    state = State(walk.facts, given[:states], [None] * states, [walk.lists.get(id(t)) for t in given[:states]])
    state.lists = [one and one.copy() for one in state.lists]
    before = inside = None
    for _ in range(_SEEN_ROUNDS):
        if inside is not None:
            inside.let_go()
        inside = Inside(walk, body, "f", _ROUNDS)
        facts = Facts(Prepared.of(inside.graph), walk.facts)
        inner = inside.graph.inputs
        for at in range(states):
            facts.follow(inner[at], state.facts, state.tensors[at])
        for tensor, (other, there) in zip(inner[states:], element):
            if other is None:
                facts.give_outside(tensor, there, False)
            else:
                facts.follow(tensor, other, there)
        for tensor, outer in zip(inner[states + len(element) :], given[states:]):
            facts.follow(tensor, walk.facts, outer)
        placed = (*state.tensors, *[there for _, there in element], *given[states:])
        inside.begin(facts, placed)
        for at in range(states):
            if state.lists[at] is not None:
                inside.inner.lists[id(inner[at])] = state.lists[at]
        _bring_in(inside, inner[states : states + len(element)], body)
        inside.finish()
        lists = [inside.inner.lists.get(id(t)) for t in inside.graph.outputs[:states]]
        before, state = state, State(facts, inside.graph.outputs[:states], [None] * states, lists)
    if state.keeps_more(before):
        walk.outcome.kept_in_loops.append(body.name)
    inside.let_go()
    return [(inside.facts, tensor) for tensor in inside.graph.outputs[states:]]


def _bring_in(inside: Inside, tensors, step: Step) -> None:
    """An element comes from the host."""
    for tensor in tensors:
        dtype, shape = tensor.dtype.base_dtype, inside.facts.shape(tensor)
        if shape is not None and shapes.is_on_gpu(dtype.name):
            size = shapes.bytes_of(shape, dtype)
            inside.inner.taken[id(tensor)] = inside.walk.take(size, shape, dtype.name, step)
