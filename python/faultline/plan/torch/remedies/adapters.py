"""Frozen weights with low-rank adapters beside the linear layers (LoRA), as the library peft makes them."""

from __future__ import annotations

import torch

from ...remedies.remedy import Offer, Remedy
from ...source.edits import Statement
from .seen import in_and_out, linears_of, tensors_of

_RANK = 16


class Lora(Remedy):
    name = "lora"

    def offers(self):
        seen = self.seen
        if not seen.trains() or len(seen.optimizers) != 1:
            return
        optimizer = seen.optimizers[0]
        if optimizer.elements < 0.5 * sum(model.elements for model in seen.models):
            return  # most of it is frozen already
        covered = sum(inputs * outputs for inputs, outputs in optimizer.linears)
        if not covered or covered < 0.5 * optimizer.elements:
            return
        share = sum(_RANK * (inputs + outputs) for inputs, outputs in optimizer.linears) / optimizer.elements
        statement = Statement(optimizer.place)
        scratch = "" if "loaded" in seen.uses else "; for a model whose weights are trained already"
        yield Offer(
            str(_RANK),
            f"LoRA of rank {_RANK}",
            f'Freeze the weights and train adapters: peft.get_peft_model(model, peft.LoraConfig(r={_RANK}, target_modules="all-linear")) before the optimizer is made{scratch}',
            keeps={"gradients": share, "optimizer": share, "running": 0.9 * seen.without_step()},
            edits=self._edits(statement),
        )

    def _edits(self, statement) -> list:
        """Before the optimizer is made, in the file and under the name that the model has there."""
        made = Statement(model.moved) if (model := self.seen.model()) is not None else None
        name = made.moved_name() if made is not None else ""
        if not name or made.file != statement.file or made.indent != statement.indent:
            return []
        return statement.before(
            f'{name} = peft.get_peft_model({name}, peft.LoraConfig(r={_RANK}, target_modules="all-linear"))'
        )

    def apply(self, value) -> None:
        rank = int(value)

        def change(_optimizer, params):
            trained = {id(p): p for p in tensors_of(params)}
            layers = linears_of(self.seen.modules, trained)
            if not layers:
                return params
            for parameter in trained.values():
                parameter.requires_grad_(False)
            new = [p for layer in layers for p in _adapt(layer, rank)]
            self.done(f"{len(layers)} linear layers got adapters of rank {rank}, and all else was frozen")
            return new

        self.seen.before_optimizer.append(change)


def _adapt(layer, rank: int) -> list:
    """The adapters in float32, as peft makes them also beside weights of 16 bits."""
    inputs, outputs = in_and_out(layer)
    place = {"dtype": torch.float32, "device": layer.weight.device}
    down = torch.nn.Parameter(torch.zeros(rank, inputs, **place))
    up = torch.nn.Parameter(torch.zeros(outputs, rank, **place))
    for name, parameter in (("lora_down", down), ("lora_up", up)):
        parameter._faultline_own = True  # it stays as it is where weights are made half
        layer.register_parameter(name, parameter)
    forward = layer.forward

    def faultline(input):
        result = forward(input)
        linear = torch.nn.functional.linear
        beside = linear(linear(input.to(layer.lora_down.dtype), layer.lora_down), layer.lora_up)
        return (result + beside * 2.0).to(result.dtype)

    layer.forward = faultline
    return [down, up]
