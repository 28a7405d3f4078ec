"""LSTM, GRU and RNN through cuDNN."""

from __future__ import annotations

from ...session.recurrent_sizes import Net
from .steps import Call, Steps, kernel, true_outputs


def _net(call: Call) -> Net:
    x = call.get("input")
    sizes = call.get("batch_sizes") or []
    if sizes:
        batch, positions, padded = sizes[0], x.size(0), sizes[0] * len(sizes)
    else:
        batch = x.size(0) if call.get("batch_first") else x.size(1)
        positions = padded = x.size(0) * x.size(1)
    return Net(
        mode=call.get("mode"),
        width=x.size(-1),
        hidden=call.get("hidden_size"),
        layers=call.get("num_layers"),
        directions=2 if call.get("bidirectional") else 1,
        batch=batch,
        positions=positions,
        padded=padded,
        itemsize=x.element_size(),
        dropout=call.get("dropout", 0.0),
        train=bool(call.get("train", True)),
        is_packed=bool(sizes),
    )


def _time_first_bytes(call: Call) -> int:
    """cuDNN wants time first: an input with the batch first is copied."""
    x = call.get("input")
    return x.numel() * x.element_size() if call.get("batch_first") and not call.get("batch_sizes") else 0


@kernel("_cudnn_rnn")
def forward(call: Call):
    steps = Steps()
    if copied := _time_first_bytes(call):
        steps.take(copied)
    steps.out()
    steps.take(_net(call).workspace_bytes())
    return steps.done()


@kernel("_cudnn_rnn_backward")
def backward(call: Call):
    """Once for the inputs' gradients and once for the weights'; the input and the output's gradient are copied as in forward."""
    size = _net(call).workspace_bytes()
    steps = Steps()
    if copied := _time_first_bytes(call):
        steps.take(copied)
        steps.take(copied // call.get("input").size(-1) * call.get("output").size(-1))
    steps.out()
    for _ in range(2):
        steps.give(steps.take(size))
    return steps.done()


@true_outputs("_cudnn_rnn")
def results(call: Call):
    """The reserve space; weights that already lie in one buffer are returned as they are."""
    sizes = {3: _net(call).reserve_bytes()}
    if call.get("weight_buf") is not None:
        sizes[4] = 0
    return sizes
