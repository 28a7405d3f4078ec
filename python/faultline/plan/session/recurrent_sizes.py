"""LSTM, GRU and RNN through cuDNN: reserve space (kept for the backward pass) and workspace.

Both follow from measurements (H200, cuDNN 9.19; scripts/plan_accuracy/rnn_cases.py): whole numbers of values for each time step of each batch entry, for each entry and layer, the
weights once, 8 MiB for each layer and direction. All of 240 cases and 14 of 21 earlier ones are met to the byte, six are within 3 %; a plain RNN in half precision took twice as much.
"""

from __future__ import annotations

from dataclasses import dataclass

RNN_RELU, RNN_TANH, LSTM, GRU = 0, 1, 2, 3
_SAVED = {RNN_RELU: 1, RNN_TANH: 1, LSTM: 5, GRU: 6}
_GATES = {RNN_RELU: 1, RNN_TANH: 1, LSTM: 4, GRU: 3}
_SCRATCH = 8 << 20  # of each layer and direction


@dataclass
class Net:
    mode: int
    width: int  # of the input
    hidden: int
    layers: int
    directions: int
    batch: int
    positions: int  # all time steps of all entries
    padded: int  # with those that only fill up
    itemsize: int
    dropout: float = 0.0
    train: bool = True
    is_packed: bool = False

    def units(self) -> int:
        return self.positions * self.hidden * self.directions

    def reserve_bytes(self) -> int:
        if not self.train:
            return 0
        values = (self.layers * _SAVED[self.mode] + self.layers - 1) * self.units()
        dropped = (self.layers - 1) * self.padded * self.hidden * self.directions if self.dropout else 0
        return values * self.itemsize + dropped * self.directions // 8 + 256

    def workspace_bytes(self) -> int:
        out = self.hidden * self.directions
        gates = _GATES[self.mode] * out
        states = 2 if self.mode == LSTM else 1
        one = gates + (2 * out if self.directions == 2 else 0)  # values of one time step of one entry
        kept = one + (2 * out if self.mode == LSTM else 0)  # of each entry and layer
        widths = [self.width] + [out] * (self.layers - 1)
        weights = sum(gates * (width + self.hidden) for width in widths)
        drops = self.train and self.dropout and self.layers > 1
        step, backward = one, 4 * out
        if not self.is_packed:
            step += self.width + out
            kept += 2 * states * out
            backward += self.directions * self.width
            if self.layers == 1 or self.directions == 2:
                backward += (1 if self.layers == 1 else 2) * self.directions * max(self.width, self.hidden)
        if drops and self.directions == 1 and _GATES[self.mode] > 1:
            step += out
        if self.train and backward > step:
            step = backward
            kept += 0 if self.is_packed or _GATES[self.mode] > 1 else 2 * out
        values = self.positions * step + self.batch * self.layers * kept + weights
        lengths = 0 if self.is_packed else 8 * self.batch
        return values * self.itemsize + lengths + self.layers * self.directions * _SCRATCH + 256
