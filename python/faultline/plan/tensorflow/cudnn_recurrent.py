"""LSTM, GRU and RNN that cuDNN runs as one operation: what it keeps for the gradient, and what it works in."""

from __future__ import annotations

from ..session import recurrent_sizes as sizes

_MODES = {b"rnn_relu": sizes.RNN_RELU, b"rnn_tanh": sizes.RNN_TANH, b"lstm": sizes.LSTM, b"gru": sizes.GRU}
_FORWARD = ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
_BACKWARD = ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3")


def come_to(walk, step) -> bool:
    """Is it one of cuDNN's? Then the walk has been through it."""
    if step.kind not in _FORWARD and step.kind not in _BACKWARD:
        return False
    walk.facts.infer(step)
    net = _net(walk.facts, step)
    if net is None:
        walk.outcome.unknown.append(f"{step.name}, {step.kind}")
        return True
    walk.outcome.library.add("cuDNN's recurrent layers")
    if step.kind in _FORWARD:
        reserve = step.outputs[3]
        walk.facts.shapes[reserve.id] = (-(-net.reserve_bytes() // net.itemsize),)
    for out in step.outputs:
        if walk.facts.shape_of(out) is not None:
            walk.result(step, out)
    size = net.workspace_bytes()
    for _ in range(1 if step.kind in _FORWARD else 2):  # the gradient of what came in, and of the weights
        walk.take(size, (size,), "uint8", step).let_go(walk.session)
    return True


def _net(facts, step) -> sizes.Net | None:
    x, state = facts.shape(step.inputs[0]), facts.shape(step.inputs[1])
    attributes = step.operation.node_def.attr
    mode = _MODES.get(attributes["rnn_mode"].s)
    if x is None or state is None or mode is None or len(x) != 3:
        return None
    time_first = step.kind[-1] != "3" or attributes["time_major"].b
    directions = 2 if attributes["direction"].s == b"bidirectional" else 1
    layers_at = 0 if time_first or len(state) < 3 else 1
    return sizes.Net(
        mode=mode,
        width=x[2],
        hidden=state[-1],
        layers=max(1, state[layers_at] // directions),
        directions=directions,
        batch=x[1] if time_first else x[0],
        positions=x[0] * x[1],
        padded=x[0] * x[1],
        itemsize=step.inputs[0].dtype.size,
        dropout=attributes["dropout"].f,
        train=step.kind in _BACKWARD or attributes["is_training"].b,
    )
