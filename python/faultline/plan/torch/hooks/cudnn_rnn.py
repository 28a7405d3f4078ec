"""LSTM, GRU and RNN as cuDNN runs them: one operation for all layers and time steps, with a reserve for backward, on one flat buffer of weights."""

from __future__ import annotations

import torch

_MODES = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}


def _flat_buffer(weights):
    """The buffer that flatten_parameters made, if the weights lie in one."""
    first = weights[0].untyped_storage()
    if any(w.untyped_storage()._cdata != first._cdata for w in weights):
        return None
    return weights[0].detach().as_strided((first.nbytes() // weights[0].dtype.itemsize,), (1,), 0)


def install(session) -> None:
    originals = {name: getattr(torch._VF, name) for name in _MODES}
    flatten = torch.nn.RNNBase.flatten_parameters
    states: dict = {}  # of dropout, by GPU

    def run(name, data, batch_sizes, hidden, weights, has_biases, layers, dropout, training, both, batch_first):
        lstm = name == "lstm"
        hx, cx = (hidden[0], hidden[1]) if lstm else (hidden, None)
        width = hx.size(2)
        proj = width if lstm and cx.size(2) != width else 0
        state = None
        if training and dropout:
            if data.device not in states:
                states[data.device] = torch.empty(
                    _dropout_state_bytes(session.gpus[data.get_device()]), dtype=torch.uint8, device=data.device
                )
            state = states[data.device]
        with torch.no_grad():
            buffer = _flat_buffer(weights)
        out, hy, cy, _reserve, _buffer = torch._cudnn_rnn(
            data,
            weights,
            4 if has_biases else 2,
            buffer,
            hx,
            cx,
            _MODES[name],
            cx.size(2) if proj else width,
            proj,
            layers,
            batch_first,
            dropout,
            training,
            both,
            batch_sizes,
            state,
        )
        return (out, hy, cy) if lstm else (out, hy)

    def replacement(name):
        original = originals[name]

        def recurrent(data, second, *rest):
            if not data.is_cuda:
                return original(data, second, *rest)
            if (
                isinstance(second, torch.Tensor)
                and not second.is_cuda
                and second.dtype is torch.int64
                and len(rest) == 7
            ):  # packed: the batch sizes come second
                hidden, weights, has_biases, layers, dropout, training, both = rest
                return run(
                    name, data, second.tolist(), hidden, weights, has_biases, layers, dropout, training, both, False
                )
            weights, has_biases, layers, dropout, training, both, batch_first = rest
            return run(name, data, [], second, weights, has_biases, layers, dropout, training, both, batch_first)

        return recurrent

    for name in _MODES:
        setattr(torch._VF, name, replacement(name))

    def flatten_parameters(module):
        weights = getattr(module, "_flat_weights", [])
        if not weights or not all(isinstance(w, torch.Tensor) and w.is_cuda for w in weights):
            return flatten(module)
        with torch.no_grad():
            if _flat_buffer(weights) is not None:
                return None
            total = sum(w.numel() for w in weights)
            buffer = torch.empty(total, dtype=weights[0].dtype, device=weights[0].device)
            offset = 0
            for weight in weights:
                weight.data = buffer.as_strided(weight.size(), weight.stride(), offset)
                offset += weight.numel()
        return None

    torch.nn.RNNBase.flatten_parameters = flatten_parameters


def _dropout_state_bytes(gpu) -> int:
    """cuDNN's generator state: 24 bytes for each thread that the GPU can hold (measured on an H200)."""
    return gpu.multi_processor_count * gpu.max_threads_per_multi_processor * 24
