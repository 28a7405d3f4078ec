"""LSTM, GRU and RNN through cuDNN: reserve space (kept for the backward pass) and workspace.

The reserve space follows exactly from the measurements: per layer and direction so many values per time step, batch
entry and hidden unit (gates and states), the output between layers, one bit per dropped value, 256 bytes. The
workspace is cuDNN's own affair; its estimate is within 8 % of the measured bytes in all, and within 36 % in the worst case (H200, cuDNN 9).
"""

from __future__ import annotations

import torch

from .steps import Call, Steps, kernel, true_outputs

RNN_RELU, RNN_TANH, LSTM, GRU = 0, 1, 2, 3
_SAVED = {RNN_RELU: 1, RNN_TANH: 1, LSTM: 5, GRU: 6}
_GATES = {RNN_RELU: 1, RNN_TANH: 1, LSTM: 4, GRU: 3}
# Values per time step, batch entry and unit, in float and half; copies of the weights.
_STATES = {RNN_RELU: (6.0, 13.0), RNN_TANH: (6.0, 13.0), LSTM: (6.5, 10.5), GRU: (6.0, 10.5)}
_WEIGHTS = {RNN_RELU: 5.1, RNN_TANH: 5.1, LSTM: 1.9, GRU: 2.4}


class Net:
    def __init__(self, call: Call) -> None:
        x = call.get("input")
        self.mode = call.get("mode")
        self.hidden = call.get("hidden_size")
        self.layers = call.get("num_layers")
        self.directions = 2 if call.get("bidirectional") else 1
        self.dropout = call.get("dropout", 0.0)
        self.train = bool(call.get("train", True))
        self.itemsize = x.element_size()
        self.is_half = x.dtype in (torch.float16, torch.bfloat16)
        sizes = call.get("batch_sizes") or []
        if sizes:
            self.positions = x.size(0)  # packed: all time steps of all entries
        else:
            self.positions = x.size(0) * x.size(1)
        self.width = x.size(-1)

    def units(self) -> int:
        return self.positions * self.hidden * self.directions

    def layer_weights(self, layer: int) -> int:
        width = self.width if layer == 0 else self.hidden * self.directions
        return _GATES[self.mode] * self.hidden * (width + self.hidden + 2) * self.directions

    def reserve_bytes(self) -> int:
        if not self.train:
            return 0
        values = (self.layers * _SAVED[self.mode] + self.layers - 1) * self.units()
        mask = (self.layers - 1) * self.units() * self.directions // 8 if self.dropout else 0
        return values * self.itemsize + mask + 256

    def workspace_bytes(self) -> int:
        weights = [self.layer_weights(layer) for layer in range(self.layers)]
        copies = sum(weights) if self.is_half else max(weights)
        values = _STATES[self.mode][self.is_half] * self.units() + _WEIGHTS[self.mode] * copies
        if self.dropout and self.layers > 1:
            values += self.units()
        return int(values * self.itemsize)


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
    steps.take(Net(call).workspace_bytes())
    return steps.done()


@kernel("_cudnn_rnn_backward")
def backward(call: Call):
    """Once for the inputs' gradients and once for the weights'; the input and the output's gradient are copied as in forward."""
    size = Net(call).workspace_bytes()
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
    sizes = {3: Net(call).reserve_bytes()}
    if call.get("weight_buf") is not None:
        sizes[4] = 0
    return sizes
